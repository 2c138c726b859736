#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ingot/base/describe.h"

namespace ingot {

// One assignment that a file or a command line makes, with the place where it stands.
struct Setting {
  std::string path;            // "optim.beta1"
  std::optional<Value> value;  // absent: unset an optional field
  std::string origin;          // "tiny.toml:12", "--set"; starts the message of an error
  bool is_group = false;       // a table without content: only its name is checked
};

// Stores the settings, a later one of the same path over an earlier. All are checked before the
// first is stored, so that a failure changes nothing. Throws Error(config) with one line that names
// the origin, the path and
//   a key that is not described, and the nearest that is,
//   a wrong type, with both types,
//   a value out of range, with the range.
void apply_settings(const Fields& fields, std::span<const Setting> settings);

// A `--set PATH=VALUE` argument. VALUE is spelled as in TOML, but for a text field it may go
// without quotes, a list field may be a,b,c without brackets, and nothing at all unsets an optional
// field. Throws Error(config) where there is no "=" or no such field.
Setting command_line_setting(const Fields& fields, std::string_view argument);

}  // namespace ingot
