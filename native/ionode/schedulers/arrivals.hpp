// Requests in the order of their arrival, of which the oldest takes contiguous ones along.

#pragma once

#include <set>
#include <tuple>

#include "../scheduler.hpp"

namespace penstock {

struct ByNumber {
  bool operator()(const Request* a, const Request* b) const { return a->number < b->number; }
};

class Arrivals {
 public:
  void add(Request& request) {
    order_.insert(&request);
    if (request.kind == Kind::sync) return;
    begins_.insert(&request);
    ends_.insert(&request);
  }

  bool empty() const { return order_.empty(); }
  std::size_t size() const { return order_.size(); }

  // The oldest, what ends where it begins and so on, then what begins where it ends and so on, as
  // long as all of it stays within `limit` bytes. Of several that fit, the oldest.
  Batch take(std::uint64_t limit) {
    if (empty()) return {};
    Request& oldest = **order_.begin();
    remove(oldest);
    if (oldest.kind == Kind::sync) return Batch(oldest);
    std::uint64_t total = oldest.bytes;
    before_.clear();
    for (Request* next = &oldest; (next = fitting(ends_, *next, next->offset, limit, total));) {
      before_.push_back(next);
      if (before_.size() + 1 == largest_batch) break;
    }
    Batch batch;
    for (auto earlier = before_.rbegin(); earlier != before_.rend(); ++earlier) {
      batch.push_back(*earlier);
    }
    batch.push_back(&oldest);
    while (batch.size() < largest_batch) {
      Request* next = fitting(begins_, *batch.back(), batch.back()->end(), limit, total);
      if (next == nullptr) break;
      batch.push_back(next);
    }
    return batch;
  }

  void drain_into(std::vector<Request*>& all) {
    all.insert(all.end(), order_.begin(), order_.end());
    order_.clear();
    begins_.clear();
    ends_.clear();
  }

 private:
  // Where a contiguous neighbour would be found.
  struct Edge {
    std::uint64_t file;
    Kind kind;
    std::uint64_t at;
  };

  template <std::uint64_t (*At)(const Request&)>
  struct ByEdge {
    using is_transparent = void;
    static std::uint64_t at(const Request& request) { return At(request); }
    bool operator()(const Request* a, const Request* b) const {
      return std::tuple(a->file, a->kind, At(*a), a->number) <
             std::tuple(b->file, b->kind, At(*b), b->number);
    }
    bool operator()(const Request* a, const Edge& b) const {
      return std::tuple(a->file, a->kind, At(*a)) < std::tuple(b.file, b.kind, b.at);
    }
  };
  static std::uint64_t begin_of(const Request& request) { return request.offset; }
  static std::uint64_t end_of(const Request& request) { return request.end(); }
  using Begins = std::set<Request*, ByEdge<begin_of>>;
  using Ends = std::set<Request*, ByEdge<end_of>>;

  // The oldest neighbour at that edge, taken out, or nothing if it would exceed the limit.
  template <class Edges>
  Request* fitting(const Edges& edges, const Request& of, std::uint64_t at, std::uint64_t limit,
                   std::uint64_t& total) {
    const auto edge = edges.lower_bound(Edge{of.file, of.kind, at});
    if (edge == edges.end()) return nullptr;
    Request& next = **edge;
    const bool touches =
        next.file == of.file && next.kind == of.kind && Edges::key_compare::at(next) == at;
    if (!touches || total + next.bytes > limit) return nullptr;
    total += next.bytes;
    remove(next);
    return &next;
  }

  void remove(Request& request) {
    order_.erase(&request);
    if (request.kind == Kind::sync) return;
    begins_.erase(&request);
    ends_.erase(&request);
  }

  std::set<Request*, ByNumber> order_;
  Begins begins_;
  Ends ends_;
  std::vector<Request*> before_;  // kept for its memory
};

}  // namespace penstock
