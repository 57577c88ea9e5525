// Marks its phases, and announces their volume: as many as its argument says, of one MiB each,
// without a pause between them.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "penstock.h"

static char data[1 << 20];

int main(int count, char** words) {
  if (count != 3) return 2;
  const int file = open(words[1], O_CREAT | O_WRONLY, 0600);
  if (file < 0) return 3;
  for (int k = atoi(words[2]); k > 0; k--) {
    penstock_phase_begins_with(sizeof data);
    if (write(file, data, sizeof data) != sizeof data) return 4;
    penstock_phase_ends();
  }
  return 0;
}
