// The assertion of the native tests: prints the line that failed, and exits.

#pragma once

#include <cstdio>
#include <cstdlib>

namespace penstock {

inline void check(bool holds, const char* what, int line) {
  if (holds) return;
  std::fprintf(stderr, "line %d: %s does not hold\n", line, what);
  std::exit(1);
}

}  // namespace penstock

#define CHECK(expression) ::penstock::check((expression), #expression, __LINE__)
