// Files' queues ordered by a rank that changes with what is in them.

#pragma once

#include <algorithm>
#include <map>
#include <set>

#include "arrivals.hpp"
#include "file_queue.hpp"

namespace penstock {

struct RankedFile {
  FileKey key{};
  FileQueue queue;
  std::uint64_t rank = 0;
  std::uint64_t since = 0;  // what its scheduler counts, when it became busy
};

// The least rank first; of equal ones that which has been busy longest.
class RankedFiles {
 public:
  template <class Rank>
  void add(Request& request, Rank rank) {
    RankedFile& file = files_[key_of(request)];
    file.key = key_of(request);
    if (!file.queue.empty()) ranks_.erase(&file);
    file.queue.add(request);
    file.rank = rank(file);
    ranks_.insert(&file);
    ++size_;
  }

  // `take` takes from the file's queue; `rank` says where it then stands, if it has more.
  template <class Take, class Rank>
  Batch take(RankedFile& file, Take take, Rank rank) {
    ranks_.erase(&file);
    Batch batch = take(file.queue);
    size_ -= batch.size();
    if (file.queue.empty()) {
      const FileKey key = file.key;
      files_.erase(key);
    } else {
      file.rank = rank(file);
      ranks_.insert(&file);
    }
    return batch;
  }

  RankedFile& first() const { return **ranks_.begin(); }
  RankedFile& of(const Request& request) { return files_.find(key_of(request))->second; }
  std::size_t size() const { return size_; }

  std::vector<Request*> drain() {
    std::vector<Request*> all;
    for (const auto& entry : files_) entry.second.queue.drain_into(all);
    std::sort(all.begin(), all.end(), ByNumber{});
    ranks_.clear();
    files_.clear();
    size_ = 0;
    return all;
  }

 private:
  struct ByRank {
    bool operator()(const RankedFile* a, const RankedFile* b) const {
      return std::pair(a->rank, a->queue.opened()) < std::pair(b->rank, b->queue.opened());
    }
  };

  std::map<FileKey, RankedFile> files_;
  std::set<RankedFile*, ByRank> ranks_;
  std::size_t size_ = 0;
};

}  // namespace penstock
