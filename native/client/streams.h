// The C library's streams. They do not use the wrapped calls, so managed files get streams that do.

#ifndef PENSTOCK_STREAMS_H
#define PENSTOCK_STREAMS_H

// A program began with its output in a managed file.
void penstock_streams_start(void);

// Descriptor 1 became another file.
void penstock_streams_redirected(void);

#endif
