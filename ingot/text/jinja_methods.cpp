#include <algorithm>
#include <array>

#include "ingot/base/error.h"
#include "ingot/text/jinja_budget.h"
#include "ingot/text/jinja_builtin.h"
#include "ingot/text/jinja_format.h"
#include "ingot/text/jinja_operators.h"
#include "ingot/text/jinja_print.h"
#include "ingot/text/jinja_text.h"
#include "ingot/text/utf8.h"

namespace ingot::jinja {
namespace {

// The methods of Python's str, list and dict that change nothing, which are all that the sandbox of
// transformers lets a template call.

std::string_view self_of(const Invocation& in) {
  in.budget.bytes(in.self.text()->size());
  return *in.self.text();
}

Value views(const std::vector<std::string_view>& parts, Budget& budget) {
  budget.items(parts.size());
  Items items;
  for (const std::string_view part : parts) {
    items.emplace_back(part);
  }
  return list_of(std::move(items));
}

template <Side side>
Value strip(const Invocation& in) {
  return stripped(self_of(in), side, in.given.maybe_text(0));
}

template <std::string (*convert)(std::string_view)>
Value converted(const Invocation& in) {
  return convert(self_of(in));
}

template <Class wanted>
Value is(const Invocation& in) {
  return is_all(wanted, self_of(in));
}

template <auto cut>
Value split_by(const Invocation& in) {
  const std::optional<std::string_view> separator = in.given.maybe_text(0);
  check(separator != "", ErrorKind::format, "split: empty separator; leave it out to part words");
  return views(cut(self_of(in), separator, in.given.integer_or(1, -1)), in.budget);
}

// The part of `self` between the positions of arguments 1 and 2.
struct Part {
  std::string_view text;
  int64_t first = 0;   // in characters
  bool empty = false;  // begins beyond the end: holds nothing, not even ""
};
Part part_of(const Invocation& in) {
  const std::string_view text = self_of(in);
  const int64_t size = utf8_length(text);
  const auto within = [size](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const int64_t asked = in.given.integer_or(1, 0);
  const int64_t first = within(asked);
  const int64_t last = within(in.given.integer_or(2, size));
  const size_t begin = byte_of(text, first);
  const size_t end = byte_of(text, std::max(first, last));
  return {text.substr(begin, end - begin), first, asked > size || first > last};
}

template <bool at_end>
Value has_affix(const Invocation& in) {
  const Part part = part_of(in);
  const auto fits = [&part](const Value& affix) {
    check_defined(affix);
    check(affix.text() != nullptr, ErrorKind::format, at_end ? "endswith" : "startswith",
          ": first arg must be str or a tuple of str, not ", type_name(affix), "; give a text");
    return !part.empty &&
           (at_end ? part.text.ends_with(*affix.text()) : part.text.starts_with(*affix.text()));
  };
  const Value& affix = in.given.value(0);
  return affix.is<Tuple>() ? std::any_of(affix.list()->begin(), affix.list()->end(), fits)
                           : fits(affix);
}

template <bool last, bool required>
Value find(const Invocation& in) {
  const Part part = part_of(in);
  const std::string& wanted = in.given.text(0);
  const size_t at = part.empty ? std::string_view::npos
                    : last     ? part.text.rfind(wanted)
                               : part.text.find(wanted);
  check(!required || at != std::string_view::npos, ErrorKind::format,
        "index: substring not found; test with `in` first, or use find");
  return at == std::string_view::npos ? -1 : part.first + utf8_length(part.text.substr(0, at));
}

Value count(const Invocation& in) {
  const Part part = part_of(in);
  return part.empty ? 0 : count_of(part.text, in.given.text(0));
}

Value replace(const Invocation& in) {
  return replaced(self_of(in), in.given.text(0), in.given.text(1), in.given.integer_or(2, -1),
                  in.budget);
}

Value join(const Invocation& in) {
  std::string out;
  bool first = true;
  for (const Value& item : items_of(in.given.value(0), in.budget)) {
    check_defined(item);
    check(item.text() != nullptr, ErrorKind::format, "join: an item is a ", type_name(item),
          ", not a text; use the filter `join`, which converts");
    in.budget.bytes(in.self.text()->size() + item.text()->size());
    out += (first ? "" : *in.self.text()) + *item.text();
    first = false;
  }
  return out;
}

template <bool right>
Value partition(const Invocation& in) {
  const std::string_view text = self_of(in);
  const std::string& separator = in.given.text(0);
  check(!separator.empty(), ErrorKind::format, "partition: empty separator; give one");
  const size_t at = right ? text.rfind(separator) : text.find(separator);
  if (at == std::string_view::npos) {
    return right ? tuple_of({"", "", text}) : tuple_of({text, "", ""});
  }
  return tuple_of({text.substr(0, at), separator, text.substr(at + separator.size())});
}

Value remove_prefix(const Invocation& in) {
  std::string_view text = self_of(in);
  const std::string& prefix = in.given.text(0);
  return text.substr(text.starts_with(prefix) ? prefix.size() : 0);
}

Value remove_suffix(const Invocation& in) {
  std::string_view text = self_of(in);
  const std::string& suffix = in.given.text(0);
  return text.substr(0, text.size() - (text.ends_with(suffix) ? suffix.size() : 0));
}

Value split_lines(const Invocation& in) {
  return views(lines_of(self_of(in), in.given.flag_or(0, false)), in.budget);
}

// Fills up to a width: '<' behind the text, '>' before it, '^' on both sides.
template <char align>
Value filled(const Invocation& in) {
  const std::string_view text = self_of(in);
  const std::string fill(in.given.maybe_text(1).value_or(" "));
  check(utf8_length(fill) == 1, ErrorKind::format,
        "the fill character must be exactly one character long, not '", fill, "'; give one");
  return justified(text, in.given.integer(0), fill, align, in.budget);
}

Value zero_filled(const Invocation& in) {
  const std::string_view text = self_of(in);
  const bool sign = text.starts_with('+') || text.starts_with('-');
  const std::string_view digits = text.substr(sign ? 1 : 0);
  return std::string(text.substr(0, sign ? 1 : 0)) +
         justified(digits, std::max<int64_t>(in.given.integer(0), 1) - (sign ? 1 : 0), "0", '>',
                   in.budget);
}

Value expand_tabs(const Invocation& in) {
  const int64_t width = in.given.integer_or(0, 8);
  std::string out;
  int64_t column = 0;
  for (const std::string& one : characters_of(self_of(in))) {
    if (one == "\t") {
      const int64_t spaces = width > 0 ? width - column % width : 0;
      in.budget.bytes(spaces);
      out.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
    } else {
      out += one;
      column = one == "\n" || one == "\r" ? 0 : column + 1;
    }
  }
  return out;
}

Value format(const Invocation& in) { return format_braces(self_of(in), in.raw, in.budget); }

constexpr std::array text_table = {
    Builtin{"capitalize", "", converted<capitalized>},
    Builtin{"casefold", "", converted<folded>},
    Builtin{"center", "width fillchar?", filled<'^'>},
    Builtin{"count", "sub start? end?", count},
    Builtin{"endswith", "suffix start? end?", has_affix<true>},
    Builtin{"expandtabs", "tabsize?", expand_tabs},
    Builtin{"find", "sub start? end?", find<false, false>},
    Builtin{"format", "*", format},
    Builtin{"index", "sub start? end?", find<false, true>},
    Builtin{"isalnum", "", is<Class::alnum>},
    Builtin{"isalpha", "", is<Class::alpha>},
    Builtin{"isascii", "", is<Class::ascii>},
    Builtin{"isdecimal", "", is<Class::decimal>},
    Builtin{"isdigit", "", is<Class::digit>},
    Builtin{"isidentifier", "", is<Class::identifier>},
    Builtin{"islower", "", is<Class::lower>},
    Builtin{"isnumeric", "", is<Class::numeric>},
    Builtin{"isprintable", "", is<Class::printable>},
    Builtin{"isspace", "", is<Class::space>},
    Builtin{"istitle", "", is<Class::title>},
    Builtin{"isupper", "", is<Class::upper>},
    Builtin{"join", "iterable", join},
    Builtin{"ljust", "width fillchar?", filled<'<'>},
    Builtin{"lower", "", converted<lower>},
    Builtin{"lstrip", "chars?", strip<Side::left>},
    Builtin{"partition", "sep", partition<false>},
    Builtin{"removeprefix", "prefix", remove_prefix},
    Builtin{"removesuffix", "suffix", remove_suffix},
    Builtin{"replace", "old new count?", replace},
    Builtin{"rfind", "sub start? end?", find<true, false>},
    Builtin{"rindex", "sub start? end?", find<true, true>},
    Builtin{"rjust", "width fillchar?", filled<'>'>},
    Builtin{"rpartition", "sep", partition<true>},
    Builtin{"rsplit", "sep? maxsplit?", split_by<split_from_right>},
    Builtin{"rstrip", "chars?", strip<Side::right>},
    Builtin{"split", "sep? maxsplit?", split_by<split>},
    Builtin{"splitlines", "keepends?", split_lines},
    Builtin{"startswith", "prefix start? end?", has_affix<false>},
    Builtin{"strip", "chars?", strip<Side::both>},
    Builtin{"title", "", converted<title>},
    Builtin{"upper", "", converted<upper>},
    Builtin{"zfill", "width", zero_filled},
};

Value list_count(const Invocation& in) {
  const Items& items = *in.self.list();
  return std::count_if(items.begin(), items.end(),
                       [&](const Value& one) { return equal(one, in.given.value(0), in.budget); });
}

Value list_index(const Invocation& in) {
  const Items& items = *in.self.list();
  const auto at = std::find_if(items.begin(), items.end(), [&](const Value& one) {
    return equal(one, in.given.value(0), in.budget);
  });
  check(at != items.end(), ErrorKind::format,
        "index: the value is not in the list; test with `in`");
  return at - items.begin();
}

Value itself(const Invocation& in) { return in.self; }

constexpr std::array list_table = {
    Builtin{"copy", "", itself},
    Builtin{"count", "value", list_count},
    Builtin{"index", "value", list_index},
};

Value dict_get(const Invocation& in) {
  const Value* found = in.self.mapping()->find_key(in.given.value(0));
  return found != nullptr ? *found : in.given.get(1) != nullptr ? in.given.value(1) : Value();
}

template <DictView::Of of>
Value view(const Invocation& in) {
  return DictView{*in.self.as<Dict>(), of};
}

constexpr std::array dict_table = {
    Builtin{"copy", "", itself},
    Builtin{"get", "key default?", dict_get},
    Builtin{"items", "", view<DictView::Of::items>},
    Builtin{"keys", "", view<DictView::Of::keys>},
    Builtin{"values", "", view<DictView::Of::values>},
};

}  // namespace

std::span<const Builtin> text_methods() { return text_table; }
std::span<const Builtin> list_methods() { return list_table; }
std::span<const Builtin> dict_methods() { return dict_table; }

}  // namespace ingot::jinja
