#include "ingot/text/json_schema.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "ingot/base/error.h"
#include "ingot/base/json_library.h"
#include "ingot/text/byte_automaton.h"

namespace ingot {
namespace {

using jinja::Items;
using jinja::Mapping;
using jinja::Value;

constexpr const char* character = R"(([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4})))";
constexpr const char* integer = R"(-?(0|[1-9][0-9]{0,14}))";
constexpr const char* number = R"(-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?)";
constexpr int deepest = 32;

template <class... Parts>
[[noreturn]] void refuse(const std::string& where, const Parts&... parts) {
  throw Error(ErrorKind::format, concat(where, ": ", parts...));
}

nlohmann::ordered_json json_of(const Value& value, const std::string& where) {
  if (value.is<jinja::None>()) {
    return nullptr;
  }
  if (const bool* truth = value.as<bool>()) {
    return *truth;
  }
  if (const int64_t* whole = value.as<int64_t>()) {
    return *whole;
  }
  if (const std::string* text = value.text()) {
    return *text;
  }
  refuse(where, "a ", jinja::type_name(value),
         " as a value; texts, integers, truth values and null ", "are understood");
}

std::string literal(const Value& value, const std::string& where) {
  return automaton_quoted(json_of(value, where).dump());
}

class SchemaReader {
 public:
  explicit SchemaReader(const Value& root) : root_(root) {}

  std::string pattern(const Value& schema, const std::string& where) {
    const Mapping* own = schema.mapping();
    if (own == nullptr) {
      refuse(where, "not an object; write such as {\"type\": \"string\"}");
    }
    if (++depth_ > deepest) {
      refuse(where, "schemas lie more than ", deepest, " deep in one another, or one recurs");
    }
    std::string out = one_of_its_forms(*own, where);
    --depth_;
    return out;
  }

 private:
  std::string one_of_its_forms(const Mapping& own, const std::string& where) {
    if (const Value* reference = own.find("$ref")) {
      only(own, where, {"$ref"});
      return pattern(referred(*reference, where), where + ".$ref");
    }
    if (const Value* value = own.find("const")) {
      only(own, where, {"const", "type"});
      return literal(*value, where + ".const");
    }
    if (const Value* values = own.find("enum")) {
      only(own, where, {"enum", "type"});
      return any_of(
          items_of(*values, where + ".enum"),
          [&](const Value& value, const std::string& at) { return literal(value, at); },
          where + ".enum");
    }
    for (const char* keyword : {"anyOf", "oneOf"}) {
      if (const Value* schemas = own.find(keyword)) {
        only(own, where, {keyword});
        const std::string place = concat(where, ".", keyword);
        return any_of(
            items_of(*schemas, place),
            [&](const Value& schema, const std::string& at) { return pattern(schema, at); }, place);
      }
    }
    const Value* type = own.find("type");
    if (type == nullptr) {
      refuse(where, "says no type, enum, const, anyOf or $ref; any JSON at all cannot be kept to");
    }
    if (const Items* types = type->list()) {
      return any_of(
          *types, [&](const Value& each, const std::string& at) { return of_type(own, each, at); },
          where);
    }
    return of_type(own, *type, where);
  }

  std::string of_type(const Mapping& own, const Value& type, const std::string& where) {
    const std::string name = type.text() == nullptr ? "" : *type.text();
    const bool listed = own.find("type")->list() != nullptr;
    const auto allow = [&](std::vector<std::string_view> keywords) {
      keywords.emplace_back("type");
      if (!listed) {
        only(own, where, keywords);
      }
    };
    if (name == "string") {
      allow({"minLength", "maxLength"});
      return concat('"', character, repeats(own, "minLength", "maxLength", where), '"');
    }
    if (name == "integer" || name == "number") {
      allow({});
      return name == "integer" ? integer : number;
    }
    if (name == "boolean") {
      allow({});
      return "(true|false)";
    }
    if (name == "null") {
      allow({});
      return "null";
    }
    if (name == "object") {
      allow({"properties", "required", "additionalProperties"});
      return object(own, where);
    }
    if (name == "array") {
      allow({"items", "minItems", "maxItems"});
      return array(own, where);
    }
    refuse(where, "type: '", name,
           "' is not one of string, integer, number, boolean, null, object, array");
  }

  std::string array(const Mapping& own, const std::string& where) {
    const Value* items = own.find("items");
    if (items == nullptr) {
      refuse(where, "an array without items; say what it holds");
    }
    const std::string item = pattern(*items, where + ".items");
    const int64_t least = count(own, "minItems", 0, where);
    const int64_t most = count(own, "maxItems", -1, where);
    if (most == 0) {
      return R"(\[\])";
    }
    const std::string more = concat("(, ?", item, "){", std::max<int64_t>(least - 1, 0), ",",
                                    most < 0 ? "" : std::to_string(most - 1), "}");
    const std::string filled = concat(item, more);
    return least > 0 ? concat(R"(\[)", filled, R"(\])") : concat(R"(\[()", filled, R"()?\])");
  }

  std::string object(const Mapping& own, const std::string& where) {
    const Value* properties = own.find("properties");
    const Mapping* named = properties == nullptr ? nullptr : properties->mapping();
    if (named == nullptr) {
      refuse(where, "an object without properties; name what it holds");
    }
    if (const Value* more = own.find("additionalProperties");
        more != nullptr && (more->as<bool>() == nullptr)) {
      refuse(where, "additionalProperties: a schema; other properties cannot be kept to");
    }
    std::set<std::string> required;
    if (const Value* list = own.find("required")) {
      for (const Value& name : items_of(*list, where + ".required")) {
        if (name.text() == nullptr || named->find(*name.text()) == nullptr) {
          refuse(where, "required names a property that properties does not");
        }
        required.insert(*name.text());
      }
    }
    std::vector<Property> all;
    for (const auto& [key, schema] : named->items()) {
      const std::string& name = *key.text();
      all.push_back({concat(automaton_quoted(nlohmann::json(name).dump()), ": ?",
                            pattern(schema, concat(where, ".properties.", name))),
                     required.contains(name)});
    }
    return concat(R"(\{)", members(all, 0, true), R"(\})");
  }

  struct Property {
    std::string pattern;
    bool required;
  };

  // Those from number i on; a comma stands before each but the first that is there.
  static std::string members(const std::vector<Property>& all, size_t i, bool first) {
    if (i == all.size()) {
      return "";
    }
    const Property& own = all[i];
    const std::string with = concat(first ? "" : ", ?", own.pattern, members(all, i + 1, false));
    if (own.required) {
      return with;
    }
    if (first) {
      return concat("(", with, "|", members(all, i + 1, true), ")");
    }
    return concat("(, ?", own.pattern, ")?", members(all, i + 1, false));
  }

  template <class F>
  std::string any_of(const Items& items, const F& each, const std::string& where) {
    if (items.empty()) {
      refuse(where, "an empty list, which allows nothing");
    }
    std::string out = "(";
    for (size_t i = 0; i < items.size(); ++i) {
      out += concat(i == 0 ? "" : "|", each(items[i], concat(where, "[", i, "]")));
    }
    return out + ")";
  }

  static const Items& items_of(const Value& value, const std::string& where) {
    if (value.list() == nullptr) {
      refuse(where, "not a list");
    }
    return *value.list();
  }

  static int64_t count(const Mapping& own, const char* keyword, int64_t otherwise,
                       const std::string& where) {
    const Value* value = own.find(keyword);
    if (value == nullptr) {
      return otherwise;
    }
    const int64_t* given = value->as<int64_t>();
    if (given == nullptr || *given < 0 || *given > 1000) {
      refuse(where, keyword, ": no whole number from 0 to 1000");
    }
    return *given;
  }

  static std::string repeats(const Mapping& own, const char* least, const char* most,
                             const std::string& where) {
    const int64_t low = count(own, least, 0, where);
    const int64_t high = count(own, most, -1, where);
    return high < 0 ? concat("{", low, ",}") : concat("{", low, ",", high, "}");
  }

  const Value& referred(const Value& reference, const std::string& where) const {
    const std::string path = reference.text() == nullptr ? "" : *reference.text();
    if (!path.starts_with("#/")) {
      refuse(where, "$ref: '", path, "' is not within this schema; write such as #/$defs/name");
    }
    const Value* at = &root_;
    for (size_t from = 2; from <= path.size();) {
      const size_t slash = std::min(path.find('/', from), path.size());
      const Mapping* own = at->mapping();
      at = own == nullptr ? nullptr : own->find(path.substr(from, slash - from));
      if (at == nullptr) {
        refuse(where, "$ref: there is no '", path, "'");
      }
      from = slash + 1;
    }
    return *at;
  }

  // Refuses keywords that would restrict the text and are not looked at.
  static void only(const Mapping& own, const std::string& where,
                   const std::vector<std::string_view>& keywords) {
    static const std::set<std::string_view> annotations = {
        "title",       "description", "default",    "examples", "$schema",   "$id",    "$defs",
        "definitions", "$comment",    "deprecated", "readOnly", "writeOnly", "format", "strict"};
    for (const auto& [key, value] : own.items()) {
      const std::string& name = *key.text();
      const bool known = std::find(keywords.begin(), keywords.end(), name) != keywords.end();
      if (!known && !annotations.contains(name)) {
        refuse(where, name, " is not understood here");
      }
    }
  }

  const Value& root_;
  int depth_ = 0;
};

}  // namespace

std::string pattern_of_schema(const Value& schema) {
  return SchemaReader(schema).pattern(schema, "schema");
}

}  // namespace ingot
