#include "ingot/optim/groups.h"

#include <charconv>
#include <sstream>

namespace ingot {
namespace {

double number_of(std::string_view word, std::string_view digits, std::string_view text) {
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, failure] = std::from_chars(digits.data(), end, value);
  check(failure == std::errc() && at == end && value >= 0, ErrorKind::config, "group rule '", text,
        "': '", word, "' needs a number of at least 0 after '='");
  return value;
}

constexpr const char* settings = "lr=NUMBER, decay=on|off|NUMBER or matrix=on|off";

// Whether a part of the path says that each row of the tensor belongs to one token.
bool by_token(const std::string& name) {
  std::istringstream parts(name);
  for (std::string part; std::getline(parts, part, '.');) {
    if (part == "embedding" || part == "embeddings" || part == "positions" || part == "head") {
      return true;
    }
  }
  return false;
}

}  // namespace

GroupRule group_rule(std::string_view text) {
  std::istringstream words{std::string(text)};
  GroupRule rule;
  words >> rule.pattern;
  check(!rule.pattern.empty(), ErrorKind::config,
        "group rule: it is empty; write a name pattern, then ", settings);
  for (std::string word; words >> word;) {
    const std::string_view all = word;
    if (all.starts_with("lr=")) {
      rule.learning_rate = number_of(all, all.substr(3), text);
    } else if (all == "decay=on" || all == "decay=off") {
      rule.decay = all == "decay=on" ? 1 : 0;
    } else if (all.starts_with("decay=")) {
      rule.decay = number_of(all, all.substr(6), text);
    } else if (all == "matrix=on" || all == "matrix=off") {
      rule.matrix = all == "matrix=on";
    } else {
      throw Error(ErrorKind::config,
                  concat("group rule '", text, "': cannot read '", word, "'; write ", settings));
    }
  }
  check(rule.learning_rate || rule.decay || rule.matrix, ErrorKind::config, "group rule '", text,
        "': it sets nothing; add ", settings);
  return rule;
}

GroupRules group_rules(const std::vector<std::string>& texts) {
  GroupRules rules;
  for (const std::string& text : texts) {
    rules.push_back(group_rule(text));
  }
  return rules;
}

std::vector<Group> groups_of(const TensorDict& parameters, const GroupRules& rules) {
  std::vector<Group> groups;
  for (const auto& [name, p] : parameters) {
    groups.push_back(
        {.decay = p.rank() >= 2 ? 1.0 : 0.0, .matrix = p.rank() == 2 && !by_token(name)});
  }
  for (const GroupRule& rule : rules) {
    bool used = false;
    size_t i = 0;
    for (const auto& [name, p] : parameters) {
      Group& group = groups[i++];
      if (matches(rule.pattern, name)) {
        used = true;
        group.learning_rate = rule.learning_rate.value_or(group.learning_rate);
        group.decay = rule.decay.value_or(group.decay);
        group.matrix = rule.matrix.value_or(group.matrix && p.rank() == 2);
        check(!group.matrix || p.rank() == 2, ErrorKind::config, "group rule '", rule.pattern,
              "': matrix=on needs two dimensions: '", name, "' has shape ", p.shape(),
              "; narrow the pattern");
      }
    }
    check(used, ErrorKind::config, "group rule '", rule.pattern, "': matches none of the ",
          parameters.size(), " parameters",
          parameters.empty() ? "" : concat("; the first is '", parameters.begin()->first, "'"));
  }
  return groups;
}

}  // namespace ingot
