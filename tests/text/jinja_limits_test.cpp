#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/text/jinja_json.h"
#include "ingot/text/jinja_template.h"
#include "tests/support/paths.h"

namespace ingot::jinja {
namespace {

using testing::data_folder;
using testing::no_data_folder;

RenderOptions small() {
  RenderOptions options;
  options.limits.steps = 200'000;
  options.limits.bytes = 8 << 20;
  options.limits.output_bytes = 1 << 20;
  return options;
}

// What a template prints, or "error: " and the message, which is one line.
std::string outcome(std::string_view source, const Mapping& variables = {},
                    const RenderOptions& options = small()) {
  try {
    return Template(source, "t").render(variables, options);
  } catch (const Error& error) {
    EXPECT_NE(name(error.kind()), "internal") << error.what();
    return std::string("error: ") + error.what();
  }
}

std::string repeated(std::string_view part, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += part;
  }
  return out;
}

void expect_refused(const std::string& source, std::string_view wanted) {
  const std::string got = outcome(source);
  EXPECT_TRUE(got.starts_with("error: t:")) << got.substr(0, 200);
  EXPECT_NE(got.find(wanted), std::string::npos) << source.substr(0, 200) << "\n"
                                                 << got.substr(0, 400);
}

TEST(JinjaLimits, EndTemplatesThatLoopOrRecurse) {
  const std::string loops =
      repeated("{% for i in range(99999) %}", 3) + "x" + repeated("{% endfor %}", 3);
  expect_refused(loops, "used up its");
  expect_refused("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
                 "used up its");
  expect_refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "deep; end the recursion");
  expect_refused("{% macro m(x) %}{% if 1 %}{{ [m(x + 1)] }}{% endif %}{% endmacro %}{{ m(1) }}",
                 "deep; end the recursion");
  expect_refused(
      "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
      "deep; end the recursion");
  expect_refused("{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}",
                 "takes no keyword argument 'caller'");
  expect_refused("{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}",
                 "deep; end the recursion");
}

TEST(JinjaLimits, EndTemplatesThatFillTheMemory) {
  expect_refused("{{ 'x' * 99999999999 }}", "bytes of texts and lists");
  expect_refused("{{ 'x' * 9223372036854775807 }}", "bytes of texts and lists");
  expect_refused("{{ [1] * 9999999999 }}", "bytes of texts and lists");
  expect_refused(
      "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor "
      "%}",
      "bytes of texts and lists");
  expect_refused(
      "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
      "bytes of texts and lists");
  expect_refused(
      "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}"
      "{% endfor %}{{ n.x }}",
      "bytes of texts and lists");
  expect_refused(
      "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}"
      "{% endfor %}{{ n.x == n.x ~ '' or n.x|tojson }}",
      "bytes of texts and lists");
  expect_refused(
      "{% set n = namespace(x=(1,)) %}{% for i in range(99) %}{% set n.x = (n.x, n.x) %}"
      "{% endfor %}{{ {n.x: 1} }}",
      "too large for the key");
  expect_refused(
      "{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}",
      "deeper than 400");
  for (const char* holder : {"[n.x].index", "cycler(n.x)", "cycler(n.x).next", "joiner(n.x)",
                             "{1: n.x}.get", "[n.x]|map('list')", "{1: n.x}.items()"}) {
    expect_refused(
        std::string("{% set n = namespace(x=[]) %}{% for i in range(99999) %}{% set n.x = ") +
            holder + " %}{% endfor %}",
        std::string_view(holder).find("map") != std::string_view::npos ? "" : "deeper than 400");
  }
  expect_refused(
      "{% set n = namespace(x=1) %}{% for i in range(9999) %}{% for j in [n.x] %}"
      "{% set n.x = loop %}{% endfor %}{% endfor %}",
      "deeper than 400");
  expect_refused("{% set n = namespace() %}{% set n.n = n %}{{ n }}", "holds itself");
  expect_refused("{% set n = namespace() %}{% set n.a = [n] %}{{ n.a }}", "holds itself");
  expect_refused("{% for i in range(9999) %}{{ 'x' * 999 }}{% endfor %}", "bytes");
  expect_refused("{{ 'x'.ljust(99999999999) }}", "bytes of texts");
  expect_refused("{{ 'x'|center(99999999999) }}", "bytes of texts");
  expect_refused("{{ 'a\nb'|indent(99999999999) }}", "bytes of texts");
  expect_refused("{{ '%99999999999d' % 1 }}", "a width or precision beyond");
  expect_refused("{{ '{:>99999999999}'.format(1) }}", "a width or precision beyond");
  expect_refused("{{ [1]|batch(99999999999, 0)|list }}", "bytes of texts");
  expect_refused("{{ [1]|slice(99999999999)|list }}", "bytes of texts");
  expect_refused("{{ 'aaaa'.replace('', 'x' * 999999).replace('', 'x' * 999) }}", "bytes of texts");
  expect_refused("{{ range(0, 9223372036854775807, 1) }}", "range too big");
  expect_refused("{{ range(-9223372036854775807, 9223372036854775807, 99999)|list }}",
                 "range too big");
  expect_refused("{{ strftime_now('%A' * 600) }}", "strftime_now: a format of");
  expect_refused("{{ strftime_now('%9999999d') }}", "strftime_now");
}

TEST(JinjaLimits, CountTheOutput) {
  RenderOptions options;
  options.limits.output_bytes = 10;
  EXPECT_EQ(outcome("{{ 'x' * 10 }}", {}, options), "xxxxxxxxxx");
  EXPECT_EQ(
      outcome("{{ 'x' * 11 }}", {}, options).find("error: t:1: 'x' * 11: the output is longer"), 0u)
      << outcome("{{ 'x' * 11 }}", {}, options);
}

TEST(JinjaLimits, RefuseNumbersBeyond64Bits) {
  expect_refused("{{ 9223372036854775808 }}", "not an integer of 64 bits");
  expect_refused("{{ 9223372036854775807 + 1 }}", "integer beyond 64 bits");
  expect_refused("{{ 9223372036854775807 * 2 }}", "integer beyond 64 bits");
  expect_refused("{{ (0 - 9223372036854775807 - 1) // -1 }}", "integer beyond 64 bits");
  expect_refused("{{ -(0 - 9223372036854775807 - 1) }}", "integer beyond 64 bits");
  expect_refused("{{ 10 ** 99 }}", "integer beyond 64 bits");
  expect_refused("{{ 1e300|int }}", "beyond 64 bits");
  expect_refused("{{ '99999999999999999999'|int }}", "beyond 64 bits");
  EXPECT_EQ(outcome("{{ (0 - 9223372036854775807 - 1) % -1 }}"), "0");
  EXPECT_EQ(
      outcome("{% set low = 0 - 9223372036854775807 - 1 %}{{ 'x'.center(low) }}{{ 'x'.zfill(low) }}"
              "{{ 5|round(low) }}{{ 'a'[low:] }}{{ 'a' * low }}{{ 'abc'|truncate(3, "
              "leeway=9223372036854775807) }}"
              "{{ range(low, 9223372036854775807, 6000000000000000000)|list|length }}"),
      "xx0aabc4");
  EXPECT_EQ(outcome("{{ 1e999 }} {{ 1e999 - 1e999 }} {{ 'abc'[9223372036854775807:] }}"),
            "inf nan ");
}

TEST(JinjaLimits, RefuseNestingThatIsTooDeep) {
  for (const auto& [open, close] :
       {std::pair("(", ")"), std::pair("[", "]"), std::pair("{'a':", "}"), std::pair("-", ""),
        std::pair("not ", ""), std::pair("a(", ")"), std::pair("a[", "]"),
        std::pair("1 if ", " else 0"), std::pair("a is in ", "")}) {
    expect_refused("{{ " + repeated(open, 10'000) + "1" + repeated(close, 10'000) + " }}",
                   std::string_view(open) == "1 if " ? "more than 400 operators" : "");
  }
  for (const char* chain : {"a.", "a + ", "a ~ ", "a ** ", "a and ", "a or ", "a * "}) {
    expect_refused("{{ " + repeated(chain, 10'000) + "a }}",
                   "expression of more than 400 operators");
  }
  expect_refused("{{ a" + repeated("[0]", 10'000) + " }}", "expression of more than 400 operators");
  expect_refused("{{ a" + repeated("|e", 10'000) + " }}", "expression of more than 400 operators");
  expect_refused("{{ a" + repeated("()", 10'000) + " }}", "expression of more than 400 operators");
  expect_refused(repeated("{% if 1 %}", 10'000), "deeper than 150");
  expect_refused(repeated("{% for a in b %}", 10'000), "deeper than 150");
  expect_refused("{% for " + repeated("(", 10'000) + repeated(")", 10'000) + " %}",
                 "deeper than 150");
  expect_refused("{% set " + repeated("(", 10'000) + repeated(")", 10'000) + " %}",
                 "deeper than 150");
  EXPECT_EQ(outcome("{{ " + repeated("(", 100) + "1" + repeated(")", 100) + " }}"), "1");
  EXPECT_EQ(outcome("{{ " + repeated("1 + ", 300) + "1 }}"), "301");
}

TEST(JinjaLimits, TakeLargeTemplates) {
  const std::string large = repeated("{{ 'x' }}{% if 1 %}y{% endif %} text\n", 30'000);  // 1 MB
  const std::string got = outcome(large, {}, {});
  EXPECT_EQ(got.substr(0, 8), "xy text\n");
  EXPECT_EQ(outcome(repeated("x", 1 << 20)).size(), size_t{1} << 20);
  EXPECT_NE(outcome(repeated("{", 1 << 20)).size(), 0u);
  expect_refused(repeated("{{", 1 << 19), "");
  expect_refused("{{ '" + repeated("x", 1 << 20), "text without end");
  const std::string too_large(17 << 20, 'x');
  expect_refused(too_large, "the limit is 16777216");
}

TEST(JinjaErrors, NameLineAndConstructAndWhatToDo) {
  const std::pair<const char*, const char*> cases[] = {
      {"\n\n{{ x.y }}", "t:3: x.y: 'x' is undefined; pass it"},
      {"{% set m = {'content': 'a'} %}\n{{ m.contents + 'b' }}",
       "t:2: m.contents + 'b': 'dict object' has no attribute 'contents'; the nearest is "
       "'content'"},
      {"a\n{% if x %}", "t:2: {% if %}: block without end; close it with {% endif %}"},
      {"{% fro x in y %}", "t:1: {% fro %}: unknown tag; the nearest is for"},
      {"{% include 'x' %}", "t:1: {% include %}: tag that chat templates do not have"},
      {"{% do x %}", "use {% set %} with a namespace"},
      {"{{ 1 | uper }}", "no filter named 'uper'; the nearest is 'upper'"},
      {"{{ 1 is odddd }}", "no test named 'odddd'; the nearest is 'odd'"},
      {"{{ 'a' + 1 }}",
       "t:1: 'a' + 1: unsupported operand types for +: 'str' and 'int'; join texts"},
      {"{{ raise_exception('No ' ~ 'way') }}",
       "the template refuses: No way; change the conversation"},
      {"{{ (1 }}", "t:1: unexpected '}': ')' is awaited; balance the brackets"},
      {"{{ 1", "t:1: {{: tag without end; close it with }}"},
      {"{# x", "{#: comment without end; close it with #}"},
      {"{% raw %}", "{% raw %}: block without end"},
      {"{{ 'x", "text without end; close it with '"},
      {"{{ $ }}", "unexpected character '$' in a tag"},
      {"{{ '\\ud800' }}", "not the number of a character"},
      {"{% set x.y = 1 %}", "cannot assign attribute on non-namespace object; make it with"},
      {"{{ 1 + }}", "expected an expression, found '}}'"},
      {"{{ [].append(1) }}", "access to attribute 'append' of 'list' object is unsafe"},
  };
  for (const auto& [source, wanted] : cases) {
    const std::string got = outcome(source);
    EXPECT_TRUE(got.starts_with("error: t:")) << got;
    EXPECT_NE(got.find(wanted), std::string::npos) << source << "\n" << got;
    EXPECT_EQ(got.find('\n'), std::string::npos) << got;
  }
  EXPECT_NE(outcome("a\xff").find("t: not valid UTF-8: byte 255 at offset 1"), std::string::npos);
}

// Templates with one part changed, removed or doubled end, and in an Error or a text.
TEST(JinjaFuzz, ChangedTemplatesEndInATextOrAnError) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  std::mt19937_64 random(7);
  const auto pick = [&random](size_t size) {
    return static_cast<size_t>(random() % std::max<size_t>(size, 1));
  };
  constexpr std::string_view parts[] = {"{%",
                                        "%}",
                                        "{{",
                                        "}}",
                                        "'",
                                        "(",
                                        ")",
                                        "[",
                                        "]",
                                        "|",
                                        ".",
                                        "-",
                                        "{% for x in messages %}",
                                        "{% endfor %}",
                                        "{% if ",
                                        "loop.",
                                        "~",
                                        "range(99999)",
                                        " * 99999",
                                        "\xff",
                                        "\xe2\x82",
                                        "namespace(",
                                        "0",
                                        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
                                        "[::-1]",
                                        "**"};
  int64_t texts = 0;
  for (const std::string& name : list_folder(*data_folder() / "chat-templates")) {
    if (!name.ends_with(".json")) {
      continue;
    }
    const Value all = parse_json_value(read_file(*data_folder() / "chat-templates" / name), name);
    const Items& cases = *all.mapping()->find("cases")->list();
    for (int round = 0; round < 60; ++round) {
      std::string source = *all.mapping()->find("chat_template")->text();
      for (size_t changes = 1 + pick(3); changes > 0; --changes) {
        const size_t at = pick(source.size());
        switch (pick(4)) {
          case 0: source.erase(at, 1 + pick(20)); break;
          case 1: source.insert(at, parts[pick(std::size(parts))]); break;
          case 2: source.insert(at, source.substr(pick(source.size()), 1 + pick(40))); break;
          default: source[at] = static_cast<char>(pick(256));
        }
      }
      const Value& one = cases[pick(cases.size())];
      const std::string got = outcome(source, *one.mapping()->find("inputs")->mapping());
      texts += got.starts_with("error: ") ? 0 : 1;
    }
  }
  EXPECT_GT(texts, 20);
}

}  // namespace
}  // namespace ingot::jinja
