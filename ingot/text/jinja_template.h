#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ingot/text/jinja_budget.h"
#include "ingot/text/jinja_value.h"

namespace ingot::jinja {

struct Tree;

struct RenderOptions {
  Limits limits;
  std::function<std::tm()> clock;  // what strftime_now tells; absent: the local time
};

// A Jinja template as transformers sets Jinja up for chat templates: trim_blocks and lstrip_blocks,
// the immutable sandbox, break and continue, `{% generation %}`, raise_exception, strftime_now and
// tojson without HTML escapes. Left out, with an error that says so: other files (include, import,
// extends, blocks), autoescape, i18n, and the filters pprint, random, groupby, urlize, wordwrap,
// xmlattr and striptags. Integers have 64 bits.
class Template {
 public:
  // Parses `source`, of at most 16 MiB. `name` stands for it in messages: "chat_template.jinja".
  // Throws Error(format): `chat_template.jinja:12: {% if %}: …`.
  Template(std::string_view source, std::string name);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  const std::string& name() const { return name_; }

  // The text it prints with these variables, whose texts must be valid UTF-8. Safe to call from
  // several threads at once. Throws Error(format) that names line and construct, also where a limit
  // is reached.
  std::string render(const Mapping& variables, const RenderOptions& options = {}) const;

 private:
  std::string name_;
  std::unique_ptr<const Tree> tree_;
};

}  // namespace ingot::jinja
