#include "ingot/text/jinja_template.h"

#include <ctime>

#include "ingot/base/error.h"
#include "ingot/text/jinja_interpreter.h"
#include "ingot/text/jinja_text.h"
#include "ingot/text/jinja_tree.h"

namespace ingot::jinja {
namespace {

constexpr size_t largest_source = size_t{16} << 20;

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm out{};
  localtime_r(&now, &out);
  return out;
}

}  // namespace

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  check(source.size() <= largest_source, ErrorKind::format, name_, ": template of ", source.size(),
        " bytes, the limit is ", largest_source, "; is this the right file?");
  check_utf8(source, name_);
  try {
    tree_ = std::make_unique<const Tree>(parse_template(source));
  } catch (const Error& error) {
    throw Error(error.kind(), concat(name_, ":", error.what()), error.where());
  }
}

Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

std::string Template::render(const Mapping& variables, const RenderOptions& options) const {
  Interpreter interpreter(*tree_, variables, options.limits,
                          options.clock ? options.clock : local_time);
  try {
    return interpreter.run();
  } catch (const Error& error) {
    throw Error(error.kind(), concat(name_, ":", error.what()), error.where());
  }
}

}  // namespace ingot::jinja
