#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ingot/base/error.h"

namespace ingot::testing {

// The message of the Error that `f` throws; fails the test where the kind is another or none comes.
template <class F>
std::string message_of(ErrorKind kind, const F& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(name(error.kind()), name(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

}  // namespace ingot::testing
