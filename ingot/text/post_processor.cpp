#include "ingot/text/post_processor.h"

#include "ingot/base/error.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/text/component.h"

namespace ingot {
namespace {

using Json = nlohmann::json;

TokenId token_id(const Json& value, const std::string& subject) {
  check(value.is_number_unsigned() && value.get<uint64_t>() <= INT32_MAX, ErrorKind::format,
        subject, ": a token's id must be a number below 2^31: ", value.dump());
  return value.get<TokenId>();
}

// ["[SEP]", 102] → 102
TokenId pair_id(const Json& component, const char* key, const std::string& subject) {
  const auto found = component.find(key);
  check(found != component.end() && found->is_array() && found->size() == 2, ErrorKind::format,
        subject, ": '", key, "' must be a token and its id");
  return token_id((*found)[1], subject);
}

Frame template_frame(const Json& component, const std::string& subject) {
  const auto specials = component.find("special_tokens");
  check(specials != component.end() && specials->is_object(), ErrorKind::format, subject,
        ": 'special_tokens' must be an object");
  Frame frame;
  bool behind = false;
  for (const Json& item : component_list(component, "single", subject)) {
    check(item.is_object() && (item.contains("Sequence") || item.contains("SpecialToken")),
          ErrorKind::format, subject,
          ": 'single' holds what is neither a Sequence nor a "
          "SpecialToken: ",
          item.dump());
    if (item.contains("Sequence")) {
      check(!behind, ErrorKind::format, subject,
            ": 'single' repeats the sequence, which Ingot does not");
      behind = true;
      continue;
    }
    const auto name = json_field<std::string>(item["SpecialToken"], "id", subject);
    const auto special = specials->find(name);
    check(special != specials->end() && special->is_object(), ErrorKind::format, subject, ": '",
          name, "' is not among special_tokens");
    for (const Json& id : component_list(*special, "ids", subject)) {
      (behind ? frame.after : frame.before).push_back(token_id(id, subject));
    }
  }
  return frame;
}

Frame frame_of(const Json& component, const std::string& subject, int depth) {
  const std::string type = component_type(component, subject, depth);
  const std::string at = subject + "." + type;
  if (type == "Sequence") {
    Frame all;
    for (const Json& part : component_list(component, "processors", at)) {
      const Frame frame = frame_of(part, at, depth + 1);
      all.before.insert(all.before.begin(), frame.before.begin(), frame.before.end());
      all.after.insert(all.after.end(), frame.after.begin(), frame.after.end());
    }
    return all;
  }
  if (type == "TemplateProcessing") {
    return template_frame(component, at);
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return {{pair_id(component, "cls", at)}, {pair_id(component, "sep", at)}};
  }
  if (type == "ByteLevel") {
    return {};
  }
  unknown_component(subject, "post-processor", type);
}

}  // namespace

Frame read_frame(const std::string& json, const std::string& subject) {
  const Json component = parse_json(json, subject);
  return component.is_null() ? Frame() : frame_of(component, subject, 0);
}

}  // namespace ingot
