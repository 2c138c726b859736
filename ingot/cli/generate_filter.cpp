#include "ingot/cli/generate_filter.h"

#include "ingot/base/files.h"
#include "ingot/generate/automaton_filter.h"
#include "ingot/text/jinja_json.h"
#include "ingot/text/json_schema.h"

namespace ingot {
namespace {

// Of special tokens none: they are no text.
std::vector<std::string> bytes_of_all(const LoadedModel& loaded) {
  const TextCodec& codec = loaded.text();
  const Tokenizer* tokenizer = codec.tokenizer();
  std::vector<std::string> out(static_cast<size_t>(loaded.decoder().config().vocab));
  for (size_t id = 0; id < out.size(); ++id) {
    const auto token = static_cast<int64_t>(id);
    const bool special = tokenizer != nullptr && tokenizer->is_special(static_cast<TokenId>(id));
    out[id] = special ? "" : codec.bytes_of(token);
  }
  return out;
}

std::unique_ptr<TokenFilter> filter_of(const std::string& pattern, const std::string& subject,
                                       const LoadedModel& loaded,
                                       const std::vector<int64_t>& stop_tokens) {
  return std::make_unique<AutomatonFilter>(ByteAutomaton(pattern, subject), bytes_of_all(loaded),
                                           stop_tokens);
}

}  // namespace

std::unique_ptr<TokenFilter> filter_for(const std::string& regex, const std::string& schema,
                                        const LoadedModel& loaded,
                                        const std::vector<int64_t>& stop_tokens) {
  check(regex.empty() || schema.empty(), ErrorKind::config,
        "--regex and --json-schema: give one of them");
  if (!regex.empty()) {
    return filter_of(regex, "--regex", loaded, stop_tokens);
  }
  if (schema.empty()) {
    return nullptr;
  }
  const bool text = schema.find_first_not_of(" \t\r\n") != std::string::npos &&
                    schema[schema.find_first_not_of(" \t\r\n")] == '{';
  return filter_for_schema(
      jinja::parse_json_value(text ? schema : read_file(schema), text ? "--json-schema" : schema),
      loaded, stop_tokens);
}

std::unique_ptr<TokenFilter> filter_for_schema(const jinja::Value& schema,
                                               const LoadedModel& loaded,
                                               const std::vector<int64_t>& stop_tokens) {
  return filter_of(pattern_of_schema(schema), "the schema's pattern", loaded, stop_tokens);
}

}  // namespace ingot
