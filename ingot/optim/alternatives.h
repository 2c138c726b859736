#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ingot/base/setting.h"

namespace ingot {

// A variant of config structs, each with a `name`, is a table: these look it up.

template <class Table, size_t... I>
std::vector<std::string> alternative_names(std::index_sequence<I...>) {
  return {std::string(std::variant_alternative_t<I, Table>::name)...};
}
// The names of all alternatives, in order.
template <class Table>
std::vector<std::string> alternative_names() {
  return alternative_names<Table>(std::make_index_sequence<std::variant_size_v<Table>>());
}

// The alternative of that name at its defaults, if there is one.
template <class Table, size_t I = 0>
std::optional<Table> alternative_named(std::string_view name) {
  if constexpr (I == std::variant_size_v<Table>) {
    return std::nullopt;
  } else {
    if (std::variant_alternative_t<I, Table>::name == name) {
      return Table(std::in_place_index<I>);
    }
    return alternative_named<Table, I + 1>(name);
  }
}

// Calls choose(config, kind) with the kind that `settings` end up giving at `path`, if they give
// one: the fields that a recipe may set depend on it, so it is read first.
template <class Config>
void choose_kind(Config& config, std::span<const Setting> settings, std::string_view path) {
  for (const Setting& setting : settings) {
    if (setting.path == path && setting.value) {
      if (const auto* kind = std::get_if<std::string>(&*setting.value)) {
        choose(config, *kind);
      }
    }
  }
}

}  // namespace ingot
