#pragma once

#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/jinja_budget.h"
#include "ingot/text/jinja_tree.h"
#include "ingot/text/jinja_value.h"

namespace ingot::jinja {

// The names that a block of a template sees: its own, and those of the blocks around it.
struct Scope {
  std::shared_ptr<Scope> around;
  std::map<std::string, Value, std::less<>> names;
};
using ScopePtr = std::shared_ptr<Scope>;

// Runs a parsed template once. It walks the tree; where it stands is kept for messages.
class Interpreter {
 public:
  using Clock = std::function<std::tm()>;

  Interpreter(const Tree& tree, const Mapping& variables, const Limits& limits, Clock clock);

  // The text that the template prints. Throws Error(format) that begins with the line and the
  // construct: "12: {{ x.y }}: …".
  std::string run();

  // What builtins need of it.
  Budget& budget() { return budget_; }
  const Clock& clock() const { return clock_; }
  Value call(const Value& function, const Arguments& arguments);
  Value filter(std::string_view name, const Value& subject, const Arguments& arguments);
  bool test(std::string_view name, const Value& subject, const Arguments& arguments);
  Value attribute(const Value& value, std::string_view name);   // value.name: members first
  Value item(const Value& value, const Value& key);             // value[key]: items first
  Value attribute_path(const Value& value, const Value& path);  // "a.b.0" or a position
  Namespace* new_namespace();

 private:
  enum class Flow : uint8_t { next, break_, continue_ };
  struct Loop;

  Value evaluate(const Expression& e);
  Value value_of(const Expr& e);  // none where left out
  Value run(const Expression& e, const Literal& x);
  Value run(const Expression& e, const Name& x);
  Value run(const Expression& e, const ListDisplay& x);
  Value run(const Expression& e, const DictDisplay& x);
  Value run(const Expression& e, const Attribute& x);
  Value run(const Expression& e, const Subscript& x);
  Value run(const Expression& e, const Slice& x);
  Value run(const Expression& e, const Call& x);
  Value run(const Expression& e, const Filtered& x);
  Value run(const Expression& e, const Tested& x);
  Value run(const Expression& e, const BlockText& x);
  Value run(const Expression& e, const Unary& x);
  Value run(const Expression& e, const Binary& x);
  Value run(const Expression& e, const Logic& x);
  Value run(const Expression& e, const Comparison& x);
  Value run(const Expression& e, const Conditional& x);
  Arguments arguments_of(const CallArguments& given);
  std::optional<Value> method(const Value& self, std::string_view name);
  std::optional<Value> own_attribute(const Value& value, std::string_view name);

  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow run(const Statement& s, const Data& x);
  Flow run(const Statement& s, const Output& x);
  Flow run(const Statement& s, const If& x);
  Flow run(const Statement& s, const For& x);
  Flow run(const Statement& s, const Set& x);
  Flow run(const Statement& s, const SetBlock& x);
  Flow run(const Statement& s, const Macro& x);
  Flow run(const Statement& s, const CallBlock& x);
  Flow run(const Statement& s, const FilterBlock& x);
  Flow run(const Statement& s, const With& x);
  Flow run(const Statement& s, const Generation& x);
  Flow run(const Statement& s, const Break& x);
  Flow run(const Statement& s, const Continue& x);
  Flow loop(const Statement& s, const For& x, const Value& over, int64_t depth, ScopePtr scope);
  Value loop_value(const std::shared_ptr<Loop>& state);
  Value loop_attribute(const std::shared_ptr<Loop>& state, std::string_view name);

  void assign(const Target& target, Value value);
  Value macro_value(const Function& function);
  Value call_macro(const Function& function, const ScopePtr& scope, const Arguments& given);
  std::string captured(const Body& body, ScopePtr scope);
  Value filtered_block(const Expr& filtered, std::string text);
  void enter();  // a statement or an expression: counts the step and the depth
  void print(std::string_view text);
  void at(const Expression& e);
  std::string place() const;

  const Tree& tree_;
  const Mapping& variables_;
  Budget budget_;
  Clock clock_;
  ScopePtr scope_;
  std::vector<ScopePtr> pinned_;  // scopes in which macros were defined
  std::vector<std::unique_ptr<Namespace>> namespaces_;
  std::string* out_ = nullptr;
  std::vector<Value> block_texts_;
  int32_t depth_ = 0;
  int32_t line_ = 1;
  size_t begin_ = 0, end_ = 0;  // of the construct, in the source
};

}  // namespace ingot::jinja
