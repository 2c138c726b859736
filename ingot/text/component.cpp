#include "ingot/text/component.h"

#include "ingot/base/error.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"

namespace ingot {

std::string component_type(const nlohmann::json& component, const std::string& subject, int depth) {
  check(depth < 16, ErrorKind::format, subject, ": Sequences within Sequences, ", depth,
        " deep; the most is 16");
  check(component.is_object(), ErrorKind::format, subject, ": a component must be an object, not ",
        component.type_name());
  return json_field<std::string>(component, "type", subject);
}

const nlohmann::json& component_list(const nlohmann::json& component, const char* key,
                                     const std::string& subject) {
  const auto found = component.find(key);
  check(found != component.end() && found->is_array(), ErrorKind::format, subject, ": '", key,
        "' must be a list");
  return *found;
}

std::shared_ptr<const Regex> component_pattern(const nlohmann::json& component,
                                               const std::string& subject) {
  const auto found = component.find("pattern");
  check(found != component.end(), ErrorKind::format, subject, ": 'pattern' is missing");
  if (found->is_string()) {
    return std::make_shared<Regex>(regex_quoted(found->get<std::string>()), subject);
  }
  if (found->is_object() && found->contains("String")) {
    const auto text = json_field<std::string>(*found, "String", subject);
    // What matches nothing splits nothing, where an empty pattern would match everywhere.
    return std::make_shared<Regex>(text.empty() ? "(?!)" : regex_quoted(text), subject);
  }
  check(found->is_object() && found->contains("Regex"), ErrorKind::format, subject,
        ": 'pattern' must hold a String or a Regex");
  return std::make_shared<Regex>(json_field<std::string>(*found, "Regex", subject), subject);
}

void unknown_component(const std::string& subject, const char* kind, const std::string& type) {
  throw Error(ErrorKind::format, concat(subject, ": unknown ", kind, " '", type,
                                        "'; Ingot has no such component, so ids would be wrong"));
}

}  // namespace ingot
