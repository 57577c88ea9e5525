#define _GNU_SOURCE
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "link.h"
#include "permits.h"
#include "process.h"

// An I/O node that this process went to. Its place among `nodes` is its place among a file's
// handles.
typedef struct {
  penstock_node where;
  uint32_t generation;  // of our session; 0: the place is free
  uint64_t session[2];
  bool gone;
  uint64_t retry_at;
  uint64_t pause;               // until the next try
  _Atomic uint32_t unanswered;  // requests that it owes an answer for longer than its patience
  penstock_connection* idle;
  // One that is not used any more, but has proven the I/O node: while it stands, so does the node.
  penstock_connection* kept;
} node;

_Atomic uint32_t penstock_overdue;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of all below
static node nodes[PENSTOCK_MAP_NODES];
static uint32_t generations;
static struct {
  uint32_t version;
  bool known;
  uint32_t nodes;
  uint64_t stripe;
  bool local;  // they are all on this host
  penstock_node node[PENSTOCK_MAP_NODES];
  int place[PENSTOCK_MAP_NODES];  // -1: on this host, or there is no room for it
} map;
static penstock_connection* connections;  // all, in use, idle and broken
static penstock_connection* broken;       // to be used again

static bool same(const penstock_node* a, const penstock_node* b) {
  return a->id == b->id && a->transport == b->transport && a->port == b->port &&
         strncmp(a->address, b->address, sizeof a->address) == 0;
}

static void discard(penstock_connection* connection) {
  penstock_link_close(&connection->link);
  connection->next = broken;
  broken = connection;
}

// Keeps at most one, if it says something about the I/O node.
static void keep_or_discard(node* at, penstock_connection* connection) {
  if (at->kept != NULL && !penstock_link_stands(&at->kept->link)) {
    discard(at->kept);
    at->kept = NULL;
  }
  if (at->kept == NULL && connection->proven && penstock_link_stands(&connection->link)) {
    connection->late = true;
    at->kept = connection;
  } else {
    discard(connection);
  }
}

static void drop_idle(node* at) {
  while (at->idle != NULL) {
    penstock_connection* connection = at->idle;
    at->idle = connection->next;
    keep_or_discard(at, connection);
  }
}

static void begin_session(node* at) {
  drop_idle(at);
  at->generation = ++generations != 0 ? generations : ++generations;
  if (syscall(SYS_getrandom, at->session, sizeof at->session, 0) != (long)sizeof at->session) {
    at->session[0] = penstock_now();
    at->session[1] = (uint64_t)syscall(SYS_getpid) << 32 | at->generation;
  }
}

static int place_for(const penstock_node* where) {
  int free = -1;
  for (int k = 0; k < PENSTOCK_MAP_NODES; ++k) {
    if (nodes[k].generation != 0 && same(&nodes[k].where, where)) return k;
    if (nodes[k].generation == 0 && free < 0) free = k;
  }
  // One that has gone is kept: the next fsync of a file written through it must report the loss.
  if (free < 0) return -1;
  nodes[free].where = *where;
  nodes[free].gone = false;
  nodes[free].pause = PENSTOCK_RETRY;
  begin_session(&nodes[free]);
  return free;
}

// The agent writes rarely and quickly; one that died while it wrote leaves us with the last map.
static void read_map(const penstock_control* page) {
  const uint32_t version = atomic_load_explicit(&page->map.version, memory_order_acquire);
  if ((map.known && version == map.version) || version % 2 != 0) return;
  static penstock_node fresh[PENSTOCK_MAP_NODES];
  const uint32_t count =
      page->map.nodes <= PENSTOCK_MAP_NODES ? page->map.nodes : PENSTOCK_MAP_NODES;
  const uint64_t stripe = page->map.stripe;
  memcpy(fresh, page->map.node, count * sizeof *fresh);
  atomic_thread_fence(memory_order_acquire);
  if (atomic_load_explicit(&page->map.version, memory_order_relaxed) != version) return;
  map.version = version;
  map.known = true;
  map.nodes = count;
  map.stripe = stripe;
  map.local = true;
  for (uint32_t k = 0; k < count; ++k) {
    const bool local = fresh[k].transport == PENSTOCK_UNIX;
    map.local = map.local && local;
    map.node[k] = fresh[k];
    map.place[k] = local ? -1 : place_for(&fresh[k]);
  }
}

bool penstock_find_route(const penstock_control* page, penstock_route* route) {
  pthread_mutex_lock(&lock);
  read_map(page);
  const bool any = map.known && map.nodes != 0;
  if (any) {
    const penstock_node* own = &map.node[penstock_ordinal() % map.nodes];
    *route = (penstock_route){map.version, map.nodes, map.stripe, map.local, *own};
    if (map.stripe == 0) route->local = own->transport == PENSTOCK_UNIX;
  }
  pthread_mutex_unlock(&lock);
  return any;
}

bool penstock_node_at(uint32_t version, uint32_t place, penstock_node* where) {
  pthread_mutex_lock(&lock);
  const bool known = map.version == version && place < map.nodes;
  if (known) *where = map.node[place];
  pthread_mutex_unlock(&lock);
  return known;
}

static penstock_connection* new_connection(void) {
  penstock_connection* connection = broken;
  if (connection != NULL) {
    broken = connection->next;
    return connection;
  }
  connection =
      mmap(NULL, sizeof *connection, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (connection == MAP_FAILED) return NULL;
  connection->link.fd = -1;
  connection->always = connections;
  connections = connection;
  return connection;
}

static void set_gone(penstock_connection* connection) {
  pthread_mutex_lock(&lock);
  node* at = &nodes[connection->place];
  if (at->generation == connection->generation) {
    at->gone = true;
    at->retry_at = penstock_now() + at->pause;
    drop_idle(at);
  }
  pthread_mutex_unlock(&lock);
}

// Whether an I/O node that is silent on a new connection has proven itself on one that still
// stands. Else nobody knows who listens there.
static bool stands(int place) {
  bool any = false;
  pthread_mutex_lock(&lock);
  for (penstock_connection* c = connections; c != NULL && !any; c = c->always)
    any = c->place == place && c->proven && penstock_link_stands(&c->link);
  pthread_mutex_unlock(&lock);
  return any;
}

// True if the I/O node has the token, and is the one of the map. Only then it may have our proof.
static bool is_proven(const penstock_link* link, const penstock_introduction* introduction,
                      const penstock_control* page, uint64_t id,
                      uint8_t ours[PENSTOCK_DIGEST_BYTES]) {
  penstock_transcript transcript = {
      .hello = link->request, .introduction = *introduction, .reply = link->reply};
  memcpy(transcript.nonce, link->challenge.nonce, sizeof transcript.nonce);
  uint8_t theirs[PENSTOCK_DIGEST_BYTES];
  penstock_prove(&transcript, PENSTOCK_ROLE_NODE, page->token, theirs);
  if (!penstock_same_digest(theirs, link->challenge.proof)) return false;
  penstock_prove(&transcript, PENSTOCK_ROLE_CLIENT, page->token, ours);
  return link->reply.result == 0 && link->reply.node == id;
}

// Without the lock: this may take as long as the I/O node's patience, or as it is silent and known
// to be there (`interrupted`: not NULL where that is waited for).
static bool introduce(penstock_connection* connection, const penstock_control* page,
                      const penstock_node* where, const uint64_t session[2], bool* interrupted) {
  penstock_introduction introduction = {.session = {session[0], session[1]},
                                        .pid = (uint32_t)syscall(SYS_getpid)};
  memcpy(introduction.job, page->job, sizeof introduction.job);
  const long random = syscall(SYS_getrandom, introduction.nonce, sizeof introduction.nonce, 0);
  if (random != (long)sizeof introduction.nonce) return false;
  penstock_link* link = &connection->link;
  if (!penstock_link_open(link, where, page->patience)) return false;
  enum penstock_answer answer = penstock_link_greet(link, &introduction);
  while (interrupted != NULL && answer == PENSTOCK_LATE && stands(connection->place)) {
    if ((*interrupted = penstock_let_die())) return false;
    answer = penstock_link_await_challenge(link);
  }
  uint8_t proof[PENSTOCK_DIGEST_BYTES];
  if (answer != PENSTOCK_ANSWERED || !is_proven(link, &introduction, page, where->id, proof))
    return false;
  const uint64_t boot = link->reply.boot;
  const penstock_request prove = {.operation = PENSTOCK_PROVE, .bytes = sizeof proof};
  int64_t result;
  answer = penstock_link_ask(link, &prove, &(penstock_parcel){.text = (const char*)proof}, &result);
  while (interrupted != NULL && answer == PENSTOCK_LATE) {
    if ((*interrupted = penstock_let_die())) return false;
    answer = penstock_link_wait(link, NULL, &result);
  }
  if (answer != PENSTOCK_ANSWERED || result != 0 || link->reply.boot != 0 || link->reply.node != 0)
    return false;
  pthread_mutex_lock(&lock);
  node* at = &nodes[connection->place];
  connection->boot = boot;
  connection->proven = true;
  const bool right = at->generation == connection->generation;
  if (right) {
    at->gone = false;
    at->pause = PENSTOCK_RETRY;
    if (at->kept != NULL) discard(at->kept);
    at->kept = NULL;
  }
  pthread_mutex_unlock(&lock);
  return right;
}

static bool overlaps(const penstock_connection* busy, const penstock_file* file, uint64_t offset,
                     uint64_t end) {
  return atomic_load_explicit(&busy->overdue, memory_order_acquire) &&
         busy->device == file->device && busy->inode == file->inode && busy->offset < end &&
         offset < busy->end;
}

// With the lock, which others may have meanwhile. True: the program is told to end.
static bool wait_unlocked(void) {
  pthread_mutex_unlock(&lock);
  const struct timespec while_ = {0, 2000000};
  syscall(SYS_nanosleep, &while_, NULL);
  const bool told = penstock_let_die();
  pthread_mutex_lock(&lock);
  return told;
}

// A write that an I/O node does not answer may still happen, at any time: whatever comes after it
// at the same place has to wait for it, as on a file system that hangs.
static void wait_for_overdue(const penstock_file* file, uint64_t offset, uint64_t end) {
  for (;;) {
    bool blocked_by_write = false;
    for (penstock_connection* c = connections; c != NULL && !blocked_by_write; c = c->always)
      blocked_by_write = overlaps(c, file, offset, end);
    if (!blocked_by_write) return;
    wait_unlocked();
  }
}

// With the lock. A fresh one is still to be introduced.
static penstock_connection* take(int place, bool* fresh) {
  node* at = &nodes[place];
  penstock_connection* connection = at->idle;
  *fresh = connection == NULL;
  if (connection != NULL)
    at->idle = connection->next;
  else if (penstock_is_other_process() || (connection = new_connection()) == NULL)
    return NULL;
  if (*fresh) connection->proven = connection->late = false;
  connection->place = place;
  connection->generation = at->generation;
  connection->number = at->where.number;
  return connection;
}

// With the lock. NULL: the I/O node for this offset is not to be had.
static penstock_connection* find(uint64_t offset, size_t* bytes, bool* fresh) {
  if (map.nodes == 0) return NULL;
  const uint64_t turn = map.stripe == 0 ? penstock_ordinal() : offset / map.stripe;
  if (map.stripe != 0 && *bytes > map.stripe - offset % map.stripe)
    *bytes = map.stripe - offset % map.stripe;
  const int place = map.place[turn % map.nodes];
  if (place < 0) return NULL;
  node* at = &nodes[place];
  if (atomic_load(&at->unanswered) != 0) return NULL;
  if (at->gone) {
    const uint64_t time = penstock_now();
    if (time < at->retry_at) return NULL;
    at->pause = 2 * at->pause < PENSTOCK_RETRY_SELDOM ? 2 * at->pause : PENSTOCK_RETRY_SELDOM;
    at->retry_at = time + at->pause;  // others do not try it meanwhile
    begin_session(at);
  }
  return take(place, fresh);
}

penstock_connection* penstock_connect(const penstock_control* page, const penstock_file* file,
                                      uint64_t offset, size_t* bytes, bool* wanted) {
  if (*bytes > PENSTOCK_LARGEST) *bytes = PENSTOCK_LARGEST;
  bool fresh = false;
  pthread_mutex_lock(&lock);
  read_map(page);
  wait_for_overdue(file, offset, offset + *bytes);
  // A map of this host's own I/O nodes that has come only now: the call was decided without it.
  *wanted = map.nodes != 0 && !map.local;
  penstock_connection* connection = find(offset, bytes, &fresh);
  node to = {0};
  if (connection != NULL && fresh) to = nodes[connection->place];
  pthread_mutex_unlock(&lock);
  if (connection == NULL || !fresh || introduce(connection, page, &to.where, to.session, NULL))
    return connection;
  set_gone(connection);
  penstock_disconnect(connection);
  return NULL;
}

void penstock_disconnect(penstock_connection* connection) {
  pthread_mutex_lock(&lock);
  node* at = &nodes[connection->place];
  if (connection->link.fd >= 0 && at->generation == connection->generation && !at->gone &&
      !connection->late) {
    connection->next = at->idle;
    at->idle = connection;
  } else {
    keep_or_discard(at, connection);
  }
  pthread_mutex_unlock(&lock);
}

int64_t penstock_ask(penstock_connection* connection, penstock_request request,
                     const penstock_parcel* parcel, bool wait) {
  if (connection->late) return PENSTOCK_GONE;
  node* at = &nodes[connection->place];
  int64_t result = PENSTOCK_GONE;
  bool told = false;
  enum penstock_answer answer = penstock_link_ask(&connection->link, &request, parcel, &result);
  if (answer == PENSTOCK_LATE && wait) {
    const bool writes = request.operation == PENSTOCK_WRITE;
    atomic_store_explicit(&connection->overdue, writes, memory_order_release);
    atomic_fetch_add(&at->unanswered, 1);
    atomic_fetch_add(&penstock_overdue, 1);
    while (answer == PENSTOCK_LATE && !told) {
      // A write may still happen: whoever waits for it has to know.
      told = penstock_let_die() && !writes;
      if (!told) answer = penstock_link_wait(&connection->link, parcel, &result);
    }
    atomic_fetch_sub(&penstock_overdue, 1);
    atomic_fetch_sub(&at->unanswered, 1);
    atomic_store_explicit(&connection->overdue, false, memory_order_release);
  }
  if (answer == PENSTOCK_ANSWERED) return result;
  if (answer == PENSTOCK_LATE)
    connection->late = true;
  else
    penstock_link_close(&connection->link);
  set_gone(connection);
  return told ? -EINTR : PENSTOCK_GONE;
}

penstock_connection* penstock_reconnect(int place, uint32_t generation) {
  const penstock_control* page = penstock_active();
  pthread_mutex_lock(&lock);
  node* at = &nodes[place];
  const bool usable =
      at->generation == generation && !at->gone && atomic_load(&at->unanswered) == 0;
  bool fresh = false;
  penstock_connection* connection = usable ? take(place, &fresh) : NULL;
  const node from = *at;
  pthread_mutex_unlock(&lock);
  if (connection == NULL || !fresh ||
      (page != NULL && introduce(connection, page, &from.where, from.session, NULL)))
    return connection;
  penstock_disconnect(connection);
  return NULL;
}

int penstock_place_of_map(const penstock_control* page) {
  pthread_mutex_lock(&lock);
  read_map(page);
  const uint64_t turn = map.stripe == 0 ? penstock_ordinal() : 0;
  const int place = map.nodes == 0 ? -1 : map.place[turn % map.nodes];
  pthread_mutex_unlock(&lock);
  return place;
}

penstock_connection* penstock_return_to(const penstock_control* page, int place,
                                        bool* interrupted) {
  node* at = &nodes[place];
  for (;;) {
    bool fresh = false;
    pthread_mutex_lock(&lock);
    while (!*interrupted && atomic_load(&at->unanswered) != 0) *interrupted = wait_unlocked();
    if (!*interrupted && at->gone) begin_session(at);
    penstock_connection* connection = *interrupted ? NULL : take(place, &fresh);
    const node to = *at;
    pthread_mutex_unlock(&lock);
    if (connection == NULL || !fresh ||
        introduce(connection, page, &to.where, to.session, interrupted))
      return connection;
    pthread_mutex_lock(&lock);
    const bool superseded = at->generation != connection->generation;  // by another thread's
    pthread_mutex_unlock(&lock);
    if (!superseded) set_gone(connection);
    penstock_disconnect(connection);
    if (!superseded || *interrupted) return NULL;
  }
}

void penstock_give_up_number(int fd) {
  pthread_mutex_lock(&lock);
  for (penstock_connection* c = connections; c != NULL; c = c->always) {
    if (c->link.fd == fd) penstock_link_move(&c->link);
  }
  pthread_mutex_unlock(&lock);
  penstock_permits_give_up_number(fd);
}

void penstock_nodes_fork(bool begins) {
  if (begins)
    pthread_mutex_lock(&lock);
  else
    pthread_mutex_unlock(&lock);
  penstock_permits_fork(begins);
}

// The child's copies of our connections would keep them open after the parent has gone.
void penstock_nodes_forked(void) {
  penstock_permits_forked();
  for (penstock_connection* c = connections; c != NULL; c = c->always) {
    penstock_link_close(&c->link);
    c->proven = false;
    atomic_store_explicit(&c->overdue, false, memory_order_relaxed);
    c->next = c->always;
  }
  broken = connections;
  memset(nodes, 0, sizeof nodes);
  map.known = false;
  atomic_store_explicit(&penstock_overdue, 0, memory_order_relaxed);
}
