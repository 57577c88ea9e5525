// Counters of this process's threads, each in a slot of the counters page.

#ifndef PENSTOCK_SLOTS_H
#define PENSTOCK_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "page.h"

enum penstock_kind { PENSTOCK_READS, PENSTOCK_WRITES, PENSTOCK_SYNCS, PENSTOCK_LEFT };

// Whether the page has the part that follows the slots: an older agent's has not.
extern bool penstock_counts_places;

// Whether the job's roots are on several file systems. If not, their counters are not used.
extern bool penstock_several_file_systems;

extern __thread penstock_slot* penstock_mine;  // NULL: this thread has none yet

penstock_slot* penstock_claim(void);

static inline penstock_slot* penstock_my_slot(void) {
  return penstock_mine != NULL ? penstock_mine : penstock_claim();
}

// One thread at a time writes to a slot. Where threads outnumber slots, counts of the last may get
// lost.
static inline void penstock_add(_Atomic uint64_t* counter, uint64_t amount) {
  const uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
  atomic_store_explicit(counter, before + amount, memory_order_relaxed);
}

// Exec ended all threads of this process, perhaps during calls whose end is never recorded.
void penstock_forget_calls_before_exec(void);

// Whether another thread of this process is in a call, or waits at the gate. Threads beyond the
// slots are not known.
bool penstock_others_in_calls(void);

void penstock_count_open(void);
void penstock_count_open_elsewhere(const char* path);
void penstock_count_forwarded(enum penstock_kind kind, size_t bytes);
void penstock_count_question(void);
void penstock_count_carried(size_t bytes);                     // of those
void penstock_count_by_node(uint32_t number, uint64_t bytes);  // number: plus one; 0: unknown
void penstock_count_by_file_system(uint32_t file_system, uint64_t bytes);
void penstock_count_failed_open(void);

#endif
