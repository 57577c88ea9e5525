// The clients: sessions (the connections of one process, which share its open files) and
// groups (the jobs, whose shares requests count against). No call, no socket, no lock of its own.

#pragma once

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
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
  std::uint32_t jobs = 64;              // names that one user's processes call their job by
  std::uint32_t processes = 8192;       // of one user of this host
};

struct Group {
  std::uint64_t id = 0;
  uid_t uid = 0;
  std::string job;
  std::uint32_t connections = 0;
  std::uint64_t bytes = 0;
  std::uint64_t payload = 0;
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
    bool new_group;
  };

  // A connection of another host identifies itself; nullopt if the job has too many, or its name is
  // invalid.
  std::optional<Admitted> admit(const penstock_introduction& introduction, uid_t user) {
    const auto job = name_of(introduction.job);
    if (!job) return std::nullopt;
    const auto [group, is_new] = group_of(user, *job);
    if (group->connections >= limits_.connections) return std::nullopt;
    const Session::Key key{introduction.session[0], introduction.session[1]};
    auto& session = sessions_[key];
    if (session == nullptr) session = std::make_unique<Session>(key);
    ++session->connections;
    ++group->connections;
    return Admitted{session.get(), group, is_new};
  }

  // A process of this host says which job it is of; null if its user has too many of either.
  Group* admit(const char (&name)[PENSTOCK_JOB_BYTES], uid_t user) {
    const auto job = name_of(name);
    if (!job) return nullptr;
    std::uint32_t jobs = 0, processes = 0;
    for (const auto& [key, group] : groups_) {
      if (key.second != user || group->connections == 0) continue;
      ++jobs;
      processes += group->connections;
    }
    const auto known = groups_.find({*job, user});
    const bool running = known != groups_.end() && known->second->connections > 0;
    if ((!running && jobs >= limits_.jobs) || processes >= limits_.processes) return nullptr;
    Group* group = group_of(user, *job).first;
    if (group->connections >= limits_.connections) return nullptr;
    ++group->connections;
    return group;
  }

  void leave(Group& group) {
    if (--group.connections == 0) forget_old_groups();
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
  const auto& groups() const { return groups_; }
  const Limits& limits() const { return limits_; }

 private:
  static constexpr std::size_t remembered = 1024;  // groups without a connection, for their bytes

  static std::optional<std::string> name_of(const char (&job)[PENSTOCK_JOB_BYTES]) {
    const std::size_t length = strnlen(job, sizeof job);
    if (length == 0 || length == sizeof job) return std::nullopt;
    return std::string(job, length);
  }

  std::pair<Group*, bool> group_of(uid_t uid, const std::string& job) {
    auto& group = groups_[{job, uid}];
    const bool is_new = group == nullptr;
    if (is_new) {
      group = std::make_unique<Group>();
      group->id = next_group_++;
      group->uid = uid;
      group->job = job;
    }
    return {group.get(), is_new};
  }

  void forget_old_groups() {
    if (groups_.size() <= remembered) return;
    std::erase_if(groups_, [](const auto& entry) { return entry.second->connections == 0; });
  }

  Limits limits_;
  std::map<Session::Key, std::unique_ptr<Session>> sessions_;
  std::map<std::pair<std::string, uid_t>, std::unique_ptr<Group>> groups_;
  std::uint64_t next_group_ = 0;
};

}  // namespace penstock
