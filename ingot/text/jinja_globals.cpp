#include <array>
#include <ctime>

#include "ingot/base/error.h"
#include "ingot/text/jinja_budget.h"
#include "ingot/text/jinja_builtin.h"
#include "ingot/text/jinja_interpreter.h"
#include "ingot/text/jinja_operators.h"
#include "ingot/text/jinja_print.h"

namespace ingot::jinja {
namespace {

// The functions that every template may call: those of Jinja and the two of transformers.

constexpr int64_t longest_range = 100'000;  // the sandbox's limit

Value range(const Invocation& in) {
  Range out;
  out.stop = in.given.integer(0);
  if (in.given.get(1) != nullptr) {
    out.start = out.stop;
    out.stop = in.given.integer(1);
  }
  out.step = in.given.integer_or(2, 1);
  check(out.step != 0, ErrorKind::format, "range: step 0; leave it out for steps of 1");
  check(out.size() <= longest_range, ErrorKind::format, "range too big: ", out.size(),
        " numbers, the sandbox blocks ranges larger than ", longest_range, "; loop over less");
  return out;
}

// A dict of a mapping or of pairs, and of named values.
Mapping mapping_of(const Invocation& in, std::string_view function) {
  Mapping out;
  check(in.raw.positional.size() <= 1, ErrorKind::format, function,
        ": expected at most 1 argument, got ", in.raw.positional.size(), "; name the others");
  if (!in.raw.positional.empty()) {
    const Value& given = in.raw.positional[0];
    const bool is_dict = given.mapping() != nullptr;
    const Value pairs = is_dict ? Value(DictView{*given.as<Dict>(), DictView::Of::items}) : given;
    for (const Value& item : items_of(pairs, in.budget)) {
      const Items pair = items_of(item, in.budget);
      check(pair.size() == 2, ErrorKind::format, function, ": an item of ", pair.size(),
            " values is not a pair of key and value; give pairs");
      out.set(pair[0], pair[1]);
    }
  }
  in.budget.items(in.raw.named.size());
  for (const auto& [name, value] : in.raw.named) {
    out.set(name, value);
  }
  return out;
}

Value dict(const Invocation& in) { return dict_of(mapping_of(in, "dict")); }

Value make_namespace(const Invocation& in) {
  Namespace* names = in.machine.new_namespace();
  names->members = mapping_of(in, "namespace");
  return names;
}

Value raise_exception(const Invocation& in) {
  throw Error(ErrorKind::format,
              concat("the template refuses: ", printed(in.given.value(0), in.budget),
                     "; change the conversation to what this template takes"));
}

Value strftime_now(const Invocation& in) {
  const std::tm now = in.machine.clock()();
  std::string format;
  const std::string& asked = in.given.text(0);
  for (size_t i = 0; i < asked.size(); ++i) {
    if (asked[i] == '%' && i + 1 < asked.size() && asked[i + 1] == 'f') {
      format += "000000";  // the clock counts whole seconds
      ++i;
    } else if (asked[i] == '%' && i + 1 < asked.size() &&
               (asked[i + 1] == 'z' || asked[i + 1] == 'Z')) {
      ++i;  // a time without a zone prints none
    } else {
      format += asked[i];
    }
  }
  char buffer[4096];
  format += '|';  // so that no result is empty
  check(format.size() < 1024, ErrorKind::format, "strftime_now: a format of ", format.size(),
        " bytes; shorten it");
  const size_t size = std::strftime(buffer, sizeof buffer, format.c_str(), &now);
  check(size > 0, ErrorKind::format, "strftime_now: the result is longer than ", sizeof buffer,
        " bytes; shorten the format");
  return std::string(buffer, size - 1);
}

struct Cycle {
  Items items;
  size_t at = 0;
};

// cycler('a', 'b'): .next() gives one after the other, .current the next of them, .reset() starts
// again.
Value cycler(const Invocation& in) {
  check(!in.raw.positional.empty(), ErrorKind::format, "cycler: no items; give at least one");
  const auto state = std::make_shared<Cycle>(Cycle{in.raw.positional, 0});
  const int32_t depth = depth_of(in.raw.positional) + 1;
  Object object{"Cycler", "<Cycler object>", {}, {}, depth};
  object.attribute = [state, depth](std::string_view name) -> std::optional<Value> {
    if (name == "current") {
      return state->items[state->at];
    }
    if (name == "next") {
      return function_of(
          "next",
          [state](const Arguments&) {
            const Value now = state->items[state->at];
            state->at = (state->at + 1) % state->items.size();
            return now;
          },
          depth);
    }
    if (name == "reset") {
      return function_of(
          "reset",
          [state](const Arguments&) {
            state->at = 0;
            return Value();
          },
          depth);
    }
    return std::nullopt;
  };
  return object;
}

// joiner(', '): a function that gives nothing when first called, and the separator after.
Value joiner(const Invocation& in) {
  const Value separator = in.given.get(0) != nullptr ? in.given.value(0) : Value(", ");
  const auto used = std::make_shared<bool>(false);
  return Object{"Joiner",
                "<Joiner object>",
                {},
                [separator, used](const Arguments&) {
                  return std::exchange(*used, true) ? separator : Value("");
                },
                depth_of(separator) + 1};
}

constexpr std::array table = {
    Builtin{"cycler", "*", cycler},
    Builtin{"dict", "*", dict},
    Builtin{"joiner", "sep?", joiner},
    Builtin{"namespace", "*", make_namespace},
    Builtin{"raise_exception", "message", raise_exception},
    Builtin{"range", "start stop? step?", range},
    Builtin{"strftime_now", "format", strftime_now},
};

}  // namespace

std::span<const Builtin> globals() { return table; }

}  // namespace ingot::jinja
