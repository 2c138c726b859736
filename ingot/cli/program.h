#pragma once

#include "ingot/base/error.h"

namespace ingot {

// The exit code of a failure: 2 usage or configuration, 3 data or file, 4 numeric, 5 communication,
// 1 a defect.
int exit_code(ErrorKind kind);

// Parses the command line, runs the verb, and turns every failure into one line on standard error
// and an exit code.
int run_program(int argc, const char* const* argv);

}  // namespace ingot
