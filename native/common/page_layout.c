// Prints the module penstock.live.protocol._page_layout at build time: Python's view of page.h, so
// that the layout of the shared pages is defined once.

#include <stddef.h>
#include <stdio.h>

#include "page.h"

#define CONSTANT(name) printf(#name " = %llu\n", (unsigned long long)PENSTOCK_##name)
#define SIZE(name, type) printf(#name " = %zu\n", sizeof(type))
#define OFFSET(name, type, field) printf(#name " = %zu\n", offsetof(type, field))
#define SLOT(field) printf("    \"" #field "\": %zu,\n", offsetof(penstock_slot, field))

int main(void) {
  puts(
      "\"\"\"The layout of the shared pages, generated from native/common/page.h: do not "
      "edit.\"\"\"\n");
  printf("VERSION = %u\n", PENSTOCK_PAGE_VERSION);
  CONSTANT(CONTROL_MAGIC);
  CONSTANT(COUNTERS_MAGIC);
  CONSTANT(ROOTS);
  CONSTANT(ROOT_BYTES);
  CONSTANT(FILE_SYSTEMS);
  CONSTANT(SLOTS);
  CONSTANT(SITE_NODES);
  CONSTANT(SLOT_NODES);
  CONSTANT(MAP_NODES);
  CONSTANT(JOB_BYTES);
  CONSTANT(TOKEN_BYTES);
  CONSTANT(ADDRESS_BYTES);
  CONSTANT(DIRECTORIES);
  CONSTANT(DIRECTORY_BYTES);
  SIZE(CONTROL_BYTES, penstock_control);
  SIZE(ROOT_ENTRY_BYTES, penstock_root);
  SIZE(NODE_ENTRY_BYTES, penstock_node);
  SIZE(GATE_BYTES, penstock_gate);
  SIZE(COUNTERS_BYTES, penstock_counters);
  SIZE(SLOT_BYTES, penstock_slot);
  SIZE(DIRECTORY_ENTRY_BYTES, penstock_directory);
  SIZE(NODE_BYTES_BYTES, penstock_node_bytes);

  OFFSET(CLOSED_UNTIL, penstock_control, gate.closed_until);
  OFFSET(GATE_CHANGES, penstock_control, gate.changes);
  OFFSET(ACTIVE, penstock_control, gate.active);
  OFFSET(LONGEST_WAIT, penstock_control, longest_wait);
  OFFSET(NEVER_WAITS, penstock_control, never_waits);
  OFFSET(PATIENCE, penstock_control, patience);
  OFFSET(JOB, penstock_control, job);
  OFFSET(TOKEN, penstock_control, token);
  OFFSET(ROOT_COUNT, penstock_control, roots);
  OFFSET(DIRTY_WINDOW, penstock_control, dirty_window);
  OFFSET(FIRST_ROOT, penstock_control, root);
  OFFSET(MAP_VERSION, penstock_control, map.version);
  OFFSET(MAP_COUNT, penstock_control, map.nodes);
  OFFSET(MAP_STRIPE, penstock_control, map.stripe);
  OFFSET(FIRST_NODE, penstock_control, map.node);
  OFFSET(OTHER_GATES, penstock_control, other_gates);

  OFFSET(TAKEN, penstock_counters, taken);
  OFFSET(WAKEUPS, penstock_counters, wakeups);
  OFFSET(PHASES_BEGUN, penstock_counters, phases_begun);
  OFFSET(PHASES_ENDED, penstock_counters, phases_ended);
  OFFSET(ANNOUNCED, penstock_counters, announced);
  OFFSET(FIRST_SLOT, penstock_counters, slot);
  OFFSET(NODE_BYTES, penstock_counters, node_bytes);
  OFFSET(FIRST_DIRECTORY, penstock_counters, elsewhere);
  OFFSET(MOVED, penstock_counters, moved);
  OFFSET(BY_NODE, penstock_counters, by_node);

  puts("SLOT_FIELDS = {");
  SLOT(pid);
  SLOT(opens);
  SLOT(reads);
  SLOT(read_bytes);
  SLOT(writes);
  SLOT(write_bytes);
  SLOT(syncs);
  SLOT(left_to_kernel);
  SLOT(waits);
  SLOT(waited);
  SLOT(gave_up);
  SLOT(last_call);
  SLOT(in_flight);
  SLOT(forwarded_reads);
  SLOT(forwarded_read_bytes);
  SLOT(forwarded_writes);
  SLOT(forwarded_write_bytes);
  SLOT(left_bytes);
  SLOT(failed_open);
  SLOT(waiting);
  SLOT(interrupted);
  SLOT(locked);
  SLOT(owner);
  SLOT(opens_elsewhere);
  SLOT(carried_bytes);
  SLOT(questions);
  puts("}");
  return 0;
}
