#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/data/example.h"
#include "ingot/data/row_fault.h"

namespace ingot {

// The ways in which people lay out rows, told by their keys:
//
//   text        {"text": …}
//   completion  {"prompt": …, "completion": …} (or "response", "output", "answer"); texts are
//               joined as they are, messages go through the template
//   alpaca      {"instruction": …, "input": …, "output": …}, "system", "history"; also "instances"
//   sharegpt    {"conversations": [{"from": …, "value": …}]}, "system", "tools"
//   messages    {"messages": [{"role": …, "content": …}]}, "tools": as OpenAI has it
//   tree        {"prompt": {"text": …, "role": "prompter", "replies": […]}}: OpenAssistant's, a
//               conversation from the root to each leaf
//   preference  {"prompt": …, "chosen": …, "rejected": …}: texts, messages, ShareGPT turns, or,
//   without a
//               prompt, two whole conversations that begin alike, also in the spelling of HH
//               ("\n\nHuman: … \n\nAssistant: …")
//   label       {"messages" or "prompt" and "completion", "label": true or false}
//   ranked      {"prompt": …, "responses": […], "ranks" or "scores": […]}; neither: best first
//   generated   {"input": {"prompt" or "messages": …}, "output": …, "finish": …}: what `ingot
//               generate --out` writes. An answer that "messages" ended with is replaced by the
//               output; an output that was cut off ("finish" is not "stop") is a RowError(cut)
enum class Layout : uint8_t {
  text,
  completion,
  alpaca,
  sharegpt,
  messages,
  tree,
  preference,
  label,
  ranked,
  generated
};
inline constexpr size_t layouts = 10;
std::string_view name(Layout layout);
std::optional<Layout> layout_named(std::string_view name);

// The layout that a row's keys tell; nothing where they tell none.
std::optional<Layout> layout_of(const jinja::Mapping& row);

// Whether the order of roles is looked at: a system message first, then user and assistant in
// turns, tools' answers after calls.
enum class RoleOrder : uint8_t { strict, any };

struct LayoutOptions {
  RoleOrder order = RoleOrder::strict;
};

// What a row says: one example, or several of a tree or of "instances". Throws RowError that begins
// with the place.
std::vector<Example> examples_of(const jinja::Value& row, Layout layout, const RowPlace& place,
                                 const LayoutOptions& options = {});

// An example in a layout, as the value that reading it gives again; `convert` is that. Throws
// RowError(layout) for what the layout cannot say.
jinja::Value row_of(const Example& example, Layout layout);
std::string json_of(const jinja::Value& value);  // one line

}  // namespace ingot
