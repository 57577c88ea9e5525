// The clients: sessions (the connections of one process, which share its open files) and
// groups (the jobs, whose shares requests count against). No call, no socket, no lock of its own.

#pragma once

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "open_file.hpp"
#include "wire.h"

namespace penstock {

struct Limits {
  std::uint32_t connections = 4096;     // of one job
  std::uint32_t handles = 4096;         // of one session
  std::uint64_t payload = 64ull << 20;  // bytes in memory for one job's requests
  std::uint32_t strangers = 64;         // connections of one origin that have not said who they are
  // Of all origins together, as quota.hpp divides them:
  std::uint64_t jobs = 2048;          // names, with those that are remembered
  std::uint64_t processes = 8192;     // of this host, with a page each
  std::uint64_t permits = 16384;      // threads of this host, some 36 KiB of their pages each
  std::uint64_t memory = 1ull << 30;  // bytes for requests of other hosts
  std::uint64_t descriptors = 0;      // 0: as many as the process may have
};

struct Group {
  std::uint64_t id = 0;
  uid_t uid = 0;
  std::string job;
  std::uint32_t connections = 0;
  std::uint64_t bytes = 0;
  std::uint64_t payload = 0;
  bool known = false;  // has a share of its own
  Quota::Share share;  // of names
};

class Session {
 public:
  using Key = std::pair<std::uint64_t, std::uint64_t>;

  explicit Session(const Key& key) : key(key) {}

  std::shared_ptr<OpenFile> file(std::uint32_t handle) const {
    return handle < files_.size() ? files_[handle] : nullptr;
  }

  bool full(const Limits& limits) const { return open_ >= limits.handles; }

  // The handle of a file, which the caller must have checked for room.
  std::uint32_t add(std::shared_ptr<OpenFile> file) {
    ++open_;
    if (free_.empty()) {
      files_.push_back(std::move(file));
      return static_cast<std::uint32_t>(files_.size() - 1);
    }
    const std::uint32_t handle = free_.back();
    free_.pop_back();
    files_[handle] = std::move(file);
    return handle;
  }

  // The file whose handle is gone from now on.
  std::shared_ptr<OpenFile> remove(std::uint32_t handle) {
    if (file(handle) == nullptr) return nullptr;
    --open_;
    free_.push_back(handle);
    return std::exchange(files_[handle], nullptr);
  }

  std::vector<std::shared_ptr<OpenFile>> leave() { return std::move(files_); }
  std::uint32_t open() const { return open_; }

  Key key;
  std::uint32_t connections = 0;

 private:
  std::vector<std::shared_ptr<OpenFile>> files_;
  std::vector<std::uint32_t> free_;
  std::uint32_t open_ = 0;
};

class Sessions {
 public:
  explicit Sessions(const Limits& limits) : limits_(limits) {}

  struct Admitted {
    Session* session;
    Group* group;
  };

  // A connection of another host identifies itself; nullopt if the job has too many, or its name is
  // invalid.
  std::optional<Admitted> admit(const penstock_introduction& introduction, uid_t user,
                                const Origin& origin) {
    Group* group = admit(introduction.job, user, origin);
    if (group == nullptr) return std::nullopt;
    const Session::Key key{introduction.session[0], introduction.session[1]};
    auto& session = sessions_[key];
    if (session == nullptr) session = std::make_unique<Session>(key);
    ++session->connections;
    return Admitted{session.get(), group};
  }

  // A process says which job it is of; null if the job has too many, or its name is invalid or one
  // too many.
  Group* admit(const char (&name)[PENSTOCK_JOB_BYTES], uid_t user, const Origin& origin) {
    const auto job = name_of(name);
    Group* group = job ? group_of(user, *job, origin) : nullptr;
    if (group == nullptr || group->connections >= limits_.connections) return nullptr;
    if (++group->connections == 1 && group->known) known_[group->uid].insert(group->id);
    return group;
  }

  void leave(Group& group) {
    if (--group.connections == 0 && group.known) forget(group);
  }

  // Whether the controller has named the job, so that it has a share of its own.
  void set_known(Group& group, bool known) {
    if (group.connections > 0 && known != group.known) {
      known ? void(known_[group.uid].insert(group.id)) : forget(group);
    }
    group.known = known;
  }
  // The first such job of a user that has connections.
  std::optional<std::uint64_t> first_known(uid_t user) const {
    const auto entry = known_.find(user);
    if (entry == known_.end()) return std::nullopt;
    return *entry->second.begin();
  }

  // A connection is gone; returns the files to be closed if it was the session's last.
  std::vector<std::shared_ptr<OpenFile>> leave(Session& session, Group& group) {
    leave(group);
    if (--session.connections > 0) return {};
    auto files = session.leave();
    sessions_.erase(session.key);
    return files;
  }

  std::size_t size() const { return sessions_.size(); }
  std::size_t files() const {
    std::size_t sum = 0;
    for (const auto& [key, session] : sessions_) sum += session->open();
    return sum;
  }
  auto& groups() { return groups_; }
  const auto& groups() const { return groups_; }
  const Limits& limits() const { return limits_; }

 private:
  // Names are shown to people and sent to the controller.
  static std::optional<std::string> name_of(const char (&job)[PENSTOCK_JOB_BYTES]) {
    const std::size_t length = strnlen(job, sizeof job);
    if (length == 0 || length == sizeof job) return std::nullopt;
    for (std::size_t k = 0; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(job[k]);
      if (byte < 0x20 || byte == 0x7f) return std::nullopt;
    }
    return std::string(job, length);
  }

  Group* group_of(uid_t uid, const std::string& job, const Origin& origin) {
    if (const auto known = groups_.find({job, uid}); known != groups_.end())
      return known->second.get();
    Quota::Share share = names_->take(origin);
    if (!share) {
      // Jobs that have ended are remembered for their bytes: as long as there is room.
      std::erase_if(groups_, [&](const auto& entry) {
        return entry.second->connections == 0 && entry.second->share.origin() == origin;
      });
      share = names_->take(origin);
      if (!share) return nullptr;
    }
    auto& group = groups_[{job, uid}];
    group = std::make_unique<Group>();
    group->id = next_group_++;
    group->uid = uid;
    group->job = job;
    group->share = std::move(share);
    return group.get();
  }

  void forget(const Group& group) {
    const auto entry = known_.find(group.uid);
    entry->second.erase(group.id);
    if (entry->second.empty()) known_.erase(entry);
  }

  Limits limits_;
  std::shared_ptr<Quota> names_ = std::make_shared<Quota>(limits_.jobs);
  std::map<Session::Key, std::unique_ptr<Session>> sessions_;
  std::map<std::pair<std::string, uid_t>, std::unique_ptr<Group>> groups_;
  std::unordered_map<uid_t, std::set<std::uint64_t>> known_;  // with connections
  std::uint64_t next_group_ = 0;
};

}  // namespace penstock
