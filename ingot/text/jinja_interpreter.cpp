#include "ingot/text/jinja_interpreter.h"

#include <algorithm>

#include "ingot/base/error.h"
#include "ingot/text/jinja_operators.h"
#include "ingot/text/jinja_print.h"

namespace ingot::jinja {

// Statements; expressions are in jinja_evaluate.cpp.

namespace {

// Runs `end` when the block ends, however it ends.
template <class F>
class AtEnd {
 public:
  explicit AtEnd(F end) : end_(std::move(end)) {}
  ~AtEnd() { end_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  F end_;
};

}  // namespace

Interpreter::Interpreter(const Tree& tree, const Mapping& variables, const Limits& limits,
                         Clock clock)
    : tree_(tree), variables_(variables), budget_(limits), clock_(std::move(clock)) {}

std::string Interpreter::run() {
  std::string out;
  out_ = &out;
  scope_ = std::make_shared<Scope>();
  try {
    execute(tree_.body);
  } catch (Error& error) {
    throw Error(error.kind(), place() + error.what(), error.where());
  }
  return out;
}

// Where the rendering stands: "12: {{ x.y }}: ".
std::string Interpreter::place() const {
  constexpr size_t longest = 70;
  std::string shown = tree_.source.substr(begin_, end_ - begin_);
  for (char& c : shown) {
    c = c == '\n' ? ' ' : c;
  }
  if (shown.size() > longest) {
    size_t cut = longest;
    while ((static_cast<uint8_t>(shown[cut]) & 0xc0) == 0x80) {
      --cut;
    }
    shown = shown.substr(0, cut) + "…";
  }
  return concat(line_, ": ", shown, shown.empty() ? "" : ": ");
}

Namespace* Interpreter::new_namespace() {
  budget_.items(4);
  namespaces_.push_back(std::make_unique<Namespace>());
  return namespaces_.back().get();
}

void Interpreter::enter() {
  budget_.step();
  check(++depth_ <= budget_.limits().depth, ErrorKind::format,
        "expressions, blocks and macros call one another more than ", budget_.limits().depth,
        " deep; end the recursion, or raise the limit `depth` if the template is right");
}

void Interpreter::print(std::string_view text) {
  budget_.bytes(text.size());
  const auto size = static_cast<int64_t>(out_->size() + text.size());
  check(size <= budget_.limits().output_bytes, ErrorKind::format, "the output is longer than ",
        budget_.limits().output_bytes,
        " bytes: the template repeats itself; shorten the conversation, or raise the limit "
        "`output_bytes` if the template is right");
  *out_ += text;
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  for (const Statement& statement : body) {
    if (const Flow flow = execute(statement); flow != Flow::next) {
      return flow;
    }
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  line_ = statement.line;
  begin_ = statement.begin;
  end_ = statement.end;
  enter();
  const Flow flow =
      std::visit([&](const auto& node) { return run(statement, node); }, statement.node);
  --depth_;
  return flow;
}

Interpreter::Flow Interpreter::run(const Statement&, const Data& x) {
  print(x.text);
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const Statement&, const Output& x) {
  for (const Expr& value : x.values) {
    print(printed(evaluate(*value), budget_));
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const Statement&, const If& x) {
  for (const auto& [condition, body] : x.branches) {
    if (truth(evaluate(*condition))) {
      return execute(body);
    }
  }
  return execute(x.otherwise);
}

struct Interpreter::Loop {
  Items items;
  size_t at = 0;
  int64_t depth = 1;
  int32_t item_depth = 0;          // of the values that it goes through
  std::optional<Items> last_seen;  // by changed()
  bool finished = false;
  std::function<Value(const Value&)> recurse;  // empty unless the loop is recursive
};

Value Interpreter::loop_attribute(const std::shared_ptr<Loop>& state, std::string_view name) {
  const auto index = static_cast<int64_t>(state->at);
  const auto size = static_cast<int64_t>(state->items.size());
  if (name == "index") {
    return index + 1;
  }
  if (name == "index0") {
    return index;
  }
  if (name == "revindex") {
    return size - index;
  }
  if (name == "revindex0") {
    return size - index - 1;
  }
  if (name == "first") {
    return index == 0;
  }
  if (name == "last") {
    return index + 1 == size;
  }
  if (name == "length") {
    return size;
  }
  if (name == "depth") {
    return state->depth;
  }
  if (name == "depth0") {
    return state->depth - 1;
  }
  if (name == "previtem") {
    return index > 0 ? state->items[state->at - 1] : undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < size ? state->items[state->at + 1] : undefined("there is no next item");
  }
  if (name == "cycle") {
    return function_of(
        "cycle",
        [state](const Arguments& given) {
          check(!given.positional.empty(), ErrorKind::format,
                "no items for cycling given; give at least one");
          return given.positional[state->at % given.positional.size()];
        },
        state->item_depth + 1);
  }
  if (name == "changed") {
    return function_of(
        "changed",
        [state, this](const Arguments& given) {
          check(!state->finished, ErrorKind::format,
                "loop.changed: the loop has ended; ask within it");
          const auto same = [this](const Value& a, const Value& b) { return equal(a, b, budget_); };
          const Items& now = given.positional;
          const bool changed = !state->last_seen || state->last_seen->size() != now.size() ||
                               !std::equal(now.begin(), now.end(), state->last_seen->begin(), same);
          state->last_seen = now;
          return Value(changed);
        },
        state->item_depth + 1);
  }
  return undefined(concat("'LoopContext' object has no attribute '", name,
                          "'; loop has index, index0, first, last, length and others"));
}

Value Interpreter::loop_value(const std::shared_ptr<Loop>& state) {
  Object object{"LoopContext", "<LoopContext>", {}, {}, state->item_depth + 1};
  object.attribute = [this, state](std::string_view name) {
    return std::optional(loop_attribute(state, name));
  };
  object.call = [state](const Arguments& given) {
    check(state->recurse != nullptr && !state->finished, ErrorKind::format,
          "loop(…): the loop is not recursive, or has ended; write {% for … recursive %}");
    check(given.positional.size() == 1 && given.named.empty(), ErrorKind::format,
          "loop(…): takes one argument, the list to go through; give that alone");
    return state->recurse(given.positional[0]);
  };
  return object;
}

Interpreter::Flow Interpreter::run(const Statement& s, const For& x) {
  return loop(s, x, evaluate(*x.over), 1, scope_);
}

Interpreter::Flow Interpreter::loop(const Statement& s, const For& x, const Value& over,
                                    int64_t depth, ScopePtr scope) {
  const ScopePtr before = std::exchange(scope_, scope);
  const auto state = std::make_shared<Loop>();
  // Whatever happens, the loop ends: values that outlive it must not hold it in a circle.
  const AtEnd at_end([&] {
    state->finished = true;
    state->recurse = nullptr;
    state->last_seen.reset();
    scope_ = before;
  });
  at(*x.over);
  Items items = items_of(over, budget_);
  state->depth = depth;
  if (x.recursive) {
    state->recurse = [&s, &x, scope, depth, this](const Value& inner) {
      std::string out;
      std::string* outer = std::exchange(out_, &out);
      const AtEnd restore([&] { out_ = outer; });
      loop(s, x, inner, depth + 1, scope);
      return Value(std::move(out));
    };
  }
  for (Value& item : items) {
    if (x.condition != nullptr) {
      scope_ = std::make_shared<Scope>(Scope{scope, {}});
      assign(x.target, item);
      if (!truth(evaluate(*x.condition))) {
        continue;
      }
    }
    state->items.push_back(std::move(item));
  }
  state->item_depth = depth_of(state->items);
  const Value loop = loop_value(state);
  for (state->at = 0; state->at < state->items.size(); ++state->at) {
    scope_ = std::make_shared<Scope>(Scope{scope, {}});
    scope_->names.emplace("loop", loop);
    begin_ = s.begin;
    end_ = s.end;
    line_ = s.line;
    assign(x.target, state->items[state->at]);
    if (execute(x.body) == Flow::break_) {
      break;
    }
  }
  if (!state->items.empty()) {
    return Flow::next;
  }
  scope_ = std::make_shared<Scope>(Scope{scope, {}});
  return execute(x.otherwise);
}

void Interpreter::assign(const Target& target, Value value) {
  budget_.step();
  if (const std::string* name = std::get_if<std::string>(&target.to)) {
    scope_->names.insert_or_assign(*name, std::move(value));
    return;
  }
  if (const NamespaceMember* member = std::get_if<NamespaceMember>(&target.to)) {
    Value found;
    for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->around.get()) {
      if (const auto at = scope->names.find(member->names); at != scope->names.end()) {
        found = at->second;
        break;
      }
    }
    Namespace* const* names = found.as<Namespace*>();
    check(names != nullptr, ErrorKind::format, member->names, ".", member->member,
          ": cannot assign attribute on non-namespace object; make it with {% set ", member->names,
          " = namespace() %}");
    budget_.items(4);
    (*names)->members.set(member->member, std::move(value));
    return;
  }
  const auto& parts = std::get<std::vector<Target>>(target.to);
  Items items = items_of(value, budget_);
  check(items.size() == parts.size(), ErrorKind::format,
        items.size() < parts.size() ? "not enough" : "too many",
        " values to unpack: ", parts.size(), " names, ", items.size(),
        " values; give as many as there are names");
  for (size_t i = 0; i < parts.size(); ++i) {
    assign(parts[i], std::move(items[i]));
  }
}

Interpreter::Flow Interpreter::run(const Statement&, const Set& x) {
  assign(x.target, evaluate(*x.value));
  return Flow::next;
}

// What the body prints, run with names of its own within `scope`.
std::string Interpreter::captured(const Body& body, ScopePtr scope) {
  std::string out;
  std::string* outer = std::exchange(out_, &out);
  const ScopePtr before = std::exchange(scope_, std::move(scope));
  const AtEnd restore([&] {
    out_ = outer;
    scope_ = before;
  });
  execute(body);
  return out;
}

Value Interpreter::filtered_block(const Expr& filtered, std::string text) {
  if (filtered == nullptr) {
    return text;
  }
  block_texts_.emplace_back(std::move(text));
  Value out = evaluate(*filtered);
  block_texts_.pop_back();
  return out;
}

Interpreter::Flow Interpreter::run(const Statement&, const SetBlock& x) {
  std::string text = captured(x.body, std::make_shared<Scope>(Scope{scope_, {}}));
  assign(x.target, filtered_block(x.filtered, std::move(text)));
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const Statement&, const FilterBlock& x) {
  std::string text = captured(x.body, std::make_shared<Scope>(Scope{scope_, {}}));
  print(printed(filtered_block(x.filtered, std::move(text)), budget_));
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const Statement&, const With& x) {
  const auto scope = std::make_shared<Scope>(Scope{scope_, {}});
  for (const auto& [target, value] : x.names) {
    scope->names.insert_or_assign(std::get<std::string>(target.to), evaluate(*value));
  }
  const ScopePtr before = std::exchange(scope_, scope);
  const Flow flow = execute(x.body);
  scope_ = before;
  return flow;
}

Interpreter::Flow Interpreter::run(const Statement&, const Generation& x) {
  print(captured(x.body, std::make_shared<Scope>(Scope{scope_, {}})));
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const Statement&, const Break&) { return Flow::break_; }
Interpreter::Flow Interpreter::run(const Statement&, const Continue&) { return Flow::continue_; }

Interpreter::Flow Interpreter::run(const Statement&, const Macro& x) {
  scope_->names.insert_or_assign(x.function.name, macro_value(x.function));
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const Statement&, const CallBlock& x) {
  const auto& call_node = std::get<Call>(x.call->node);
  const Value function = evaluate(*call_node.of);
  Arguments arguments = arguments_of(call_node.arguments);
  arguments.named.emplace_back("caller", macro_value(x.caller));
  at(*x.call);
  print(printed(call(function, arguments), budget_));
  return Flow::next;
}

// The macro as a value. It sees the scope it stands in, which is kept until the rendering ends: a
// macro that its own scope held would keep both alive for ever.
Value Interpreter::macro_value(const Function& function) {
  if (pinned_.empty() || pinned_.back() != scope_) {
    budget_.items(16);
    pinned_.push_back(scope_);
  }
  const std::weak_ptr<Scope> scope = scope_;
  Object object{"Macro", concat("<Macro '", function.name, "'>"), {}, {}, 0};
  object.attribute = [&function](std::string_view name) -> std::optional<Value> {
    if (name == "name") {
      return Value(function.name);
    }
    if (name != "arguments") {
      return std::nullopt;
    }
    Items names;
    for (const auto& [parameter, fallback] : function.parameters) {
      names.emplace_back(parameter);
    }
    return tuple_of(std::move(names));
  };
  object.call = [&function, scope, this](const Arguments& given) {
    return call_macro(function, scope.lock(), given);
  };
  return object;
}

Value Interpreter::call_macro(const Function& function, const ScopePtr& around,
                              const Arguments& given) {
  const auto& parameters = function.parameters;
  const auto scope = std::make_shared<Scope>(Scope{around, {}});
  std::vector<std::pair<std::string, Value>> named = given.named;
  const auto take = [&named](std::string_view name) -> std::optional<Value> {
    const auto found = std::find_if(named.begin(), named.end(),
                                    [name](const auto& one) { return one.first == name; });
    if (found == named.end()) {
      return std::nullopt;
    }
    Value value = std::move(found->second);
    named.erase(found);
    return value;
  };
  const bool own_caller = std::any_of(parameters.begin(), parameters.end(),
                                      [](const auto& p) { return p.first == "caller"; });
  std::vector<std::optional<Value>> values;
  for (size_t i = 0; i < parameters.size(); ++i) {
    values.push_back(i < given.positional.size() ? std::optional(given.positional[i])
                                                 : take(parameters[i].first));
  }
  if (function.uses_caller && !own_caller) {
    scope->names.insert_or_assign("caller",
                                  take("caller").value_or(undefined("no caller defined")));
  }
  if (function.uses_kwargs) {
    Mapping rest;
    for (auto& [name, value] : named) {
      rest.set(name, std::move(value));
    }
    scope->names.insert_or_assign("kwargs", dict_of(std::move(rest)));
  } else {
    check(named.empty(), ErrorKind::format, "macro '", function.name,
          "' takes no keyword argument '", named.empty() ? "" : named.front().first,
          "'; remove it");
  }
  if (function.uses_varargs) {
    const size_t own = std::min(parameters.size(), given.positional.size());
    scope->names.insert_or_assign(
        "varargs",
        tuple_of({given.positional.begin() + static_cast<int64_t>(own), given.positional.end()}));
  } else {
    check(given.positional.size() <= parameters.size(), ErrorKind::format, "macro '", function.name,
          "' takes not more than ", parameters.size(), " argument(s), given are ",
          given.positional.size(), "; remove some");
  }
  const ScopePtr before = std::exchange(scope_, scope);
  const AtEnd restore([&] { scope_ = before; });
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, fallback] = parameters[i];
    Value value = values[i] ? *std::move(values[i])
                  : fallback != nullptr
                      ? evaluate(*fallback)
                      : undefined(concat("parameter '", name, "' was not provided"));
    scope->names.insert_or_assign(name, std::move(value));
  }
  return captured(function.body, scope);
}

}  // namespace ingot::jinja
