#include <algorithm>
#include <array>
#include <span>

#include "ingot/base/edit_distance.h"
#include "ingot/base/error.h"
#include "ingot/text/jinja_builtin.h"
#include "ingot/text/jinja_interpreter.h"
#include "ingot/text/jinja_operators.h"
#include "ingot/text/jinja_print.h"
#include "ingot/text/jinja_text.h"

namespace ingot::jinja {

// Expressions of the interpreter.

namespace {

// "; the nearest is 'content'", where one of the keys is near.
std::string nearest_hint(const Value& value, std::string_view name) {
  std::vector<std::string> keys;
  if (const Mapping* mapping = value.mapping()) {
    for (const auto& [key, held] : mapping->items()) {
      if (const std::string* text = key.text(); text != nullptr && text->size() < 32) {
        keys.push_back(*text);
      }
      if (keys.size() == 8) {
        break;
      }
    }
  }
  const std::string near = name.size() < 32 ? nearest_word(name, keys) : "";
  return near.empty() || edit_distance(near, name) > 3 ? "" : "; the nearest is '" + near + "'";
}

std::string quoted_type(const Value& value) {
  return value.is<None>() ? "None" : concat(type_name(value), " object");
}

Value missing_attribute(const Value& value, std::string_view name) {
  return undefined(concat("'", quoted_type(value), "' has no attribute '", name, "'",
                          nearest_hint(value, name), "; test it with `is defined` first"));
}

// What Python's types have and the sandbox does not let templates use, as it changes the value.
bool changes_value(const Value& value, std::string_view name) {
  constexpr std::array<std::string_view, 8> of_list = {"append", "clear",  "extend",  "insert",
                                                       "pop",    "remove", "reverse", "sort"};
  constexpr std::array<std::string_view, 6> of_dict = {"clear",   "fromkeys",   "pop",
                                                       "popitem", "setdefault", "update"};
  return (value.is<List>() && std::find(of_list.begin(), of_list.end(), name) != of_list.end()) ||
         (value.is<Dict>() && std::find(of_dict.begin(), of_dict.end(), name) != of_dict.end());
}

Value unsafe_attribute(const Value& value, std::string_view name) {
  return undefined(concat("access to attribute '", name, "' of '", type_name(value),
                          "' object is unsafe; templates may not change values, build new ones"));
}

}  // namespace

void Interpreter::at(const Expression& e) {
  line_ = e.line;
  begin_ = e.begin;
  end_ = e.end;
}

Value Interpreter::evaluate(const Expression& e) {
  at(e);
  enter();
  Value value = std::visit([&](const auto& node) { return run(e, node); }, e.node);
  --depth_;
  return value;
}

Value Interpreter::value_of(const Expr& e) { return e == nullptr ? Value() : evaluate(*e); }

Value Interpreter::run(const Expression&, const Literal& x) { return x.value; }

Value Interpreter::run(const Expression&, const Name& x) {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->around.get()) {
    if (const auto found = scope->names.find(x.name); found != scope->names.end()) {
      return found->second;
    }
  }
  if (const Value* found = variables_.find(x.name)) {
    return *found;
  }
  if (const Builtin* builtin = find_builtin(jinja::globals(), x.name)) {
    return function_of(
        x.name,
        [this, builtin](const Arguments& given) {
          const Bound bound(builtin->name, builtin->parameters, given);
          return builtin->run({*this, budget_, Value(), bound, given});
        },
        0);
  }
  return undefined(
      concat("'", x.name, "' is undefined; pass it, or test it with `is defined` first"));
}

Value Interpreter::run(const Expression&, const ListDisplay& x) {
  budget_.items(x.items.size());
  Items items;
  for (const Expr& item : x.items) {
    items.push_back(evaluate(*item));
  }
  return x.tuple ? tuple_of(std::move(items)) : list_of(std::move(items));
}

Value Interpreter::run(const Expression& e, const DictDisplay& x) {
  budget_.items(2 * x.items.size());
  Mapping mapping;
  for (const auto& [key, value] : x.items) {
    const Value name = evaluate(*key);
    Value held = evaluate(*value);
    at(e);
    check_defined(name);
    mapping.set(name, std::move(held));
  }
  return dict_of(std::move(mapping));
}

std::optional<Value> Interpreter::method(const Value& self, std::string_view name) {
  const std::span<const Builtin> table = self.text() != nullptr   ? text_methods()
                                         : self.list() != nullptr ? list_methods()
                                         : self.is<Dict>()        ? dict_methods()
                                                                  : std::span<const Builtin>();
  const Builtin* builtin = find_builtin(table, name);
  if (builtin == nullptr) {
    return std::nullopt;
  }
  const auto run = [this, builtin, self](const Arguments& given) {
    const Bound bound(builtin->name, builtin->parameters, given);
    return builtin->run({*this, budget_, self, bound, given});
  };
  return function_of(std::string(name), run, depth_of(self) + 1);
}

// A method or a member of an object, but no key of a dict.
std::optional<Value> Interpreter::own_attribute(const Value& value, std::string_view name) {
  if (name.starts_with('_') || changes_value(value, name)) {
    return unsafe_attribute(value, name);
  }
  if (const auto* names = value.as<Namespace*>()) {
    const Value* found = (*names)->members.find(name);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (const Object* object = value.object()) {
    return object->attribute == nullptr ? std::nullopt : object->attribute(name);
  }
  return method(value, name);
}

Value Interpreter::attribute(const Value& value, std::string_view name) {
  check_defined(value);
  const bool hidden_key = name.starts_with('_') && value.mapping() != nullptr &&
                          value.mapping()->find(name) != nullptr && !name.starts_with("__");
  if (hidden_key) {
    return *value.mapping()->find(name);
  }
  if (std::optional<Value> found = own_attribute(value, name)) {
    return *std::move(found);
  }
  const Value* key = value.mapping() != nullptr ? value.mapping()->find(name) : nullptr;
  return key != nullptr ? *key : missing_attribute(value, name);
}

Value Interpreter::item(const Value& value, const Value& key) {
  if (std::optional<Value> found = find_item(value, key, budget_)) {
    return *std::move(found);
  }
  if (const std::string* name = key.text()) {
    std::optional<Value> found = own_attribute(value, *name);
    return found ? *std::move(found) : missing_attribute(value, *name);
  }
  return undefined(concat(quoted_type(value), " has no element ", represented(key, budget_),
                          "; test its length first"));
}

Value Interpreter::attribute_path(const Value& value, const Value& path) {
  if (path.text() == nullptr) {
    return item(value, path);
  }
  Value found = value;
  for (const std::string_view part : split(*path.text(), ".", -1)) {
    const bool position = !part.empty() && part.size() < 18 &&
                          part.find_first_not_of("0123456789") == std::string_view::npos;
    found = item(found, position ? Value(std::stoll(std::string(part))) : Value(part));
  }
  return found;
}

Value Interpreter::run(const Expression& e, const Attribute& x) {
  const Value of = evaluate(*x.of);
  at(e);
  return attribute(of, x.name);
}

Value Interpreter::run(const Expression& e, const Subscript& x) {
  const Value of = evaluate(*x.of);
  const Value key = evaluate(*x.key);
  at(e);
  return item(of, key);
}

Value Interpreter::run(const Expression& e, const Slice& x) {
  const Value of = evaluate(*x.of);
  const Value start = value_of(x.start);
  const Value stop = value_of(x.stop);
  const Value step = value_of(x.step);
  at(e);
  return sliced(of, start, stop, step, budget_);
}

Arguments Interpreter::arguments_of(const CallArguments& given) {
  Arguments out;
  for (const Expr& value : given.positional) {
    out.positional.push_back(evaluate(*value));
  }
  for (const auto& [name, value] : given.named) {
    out.named.emplace_back(name, evaluate(*value));
  }
  if (given.rest != nullptr) {
    for (Value& value : items_of(evaluate(*given.rest), budget_)) {
      out.positional.push_back(std::move(value));
    }
  }
  if (given.rest_named != nullptr) {
    const Value rest = evaluate(*given.rest_named);
    check(rest.mapping() != nullptr, ErrorKind::format, "argument after ** must be a mapping, not ",
          type_name(rest), "; give a dict");
    for (const auto& [name, value] : rest.mapping()->items()) {
      check(name.text() != nullptr, ErrorKind::format, "keywords must be strings, not ",
            type_name(name), "; name the keys by texts");
      out.named.emplace_back(*name.text(), value);
    }
  }
  budget_.items(out.positional.size() + out.named.size());
  return out;
}

Value Interpreter::call(const Value& function, const Arguments& arguments) {
  check_defined(function);
  const Object* object = function.object();
  check(object != nullptr && object->call != nullptr, ErrorKind::format, "'", type_name(function),
        "' object is not callable; remove the brackets, or take a key by ['name']");
  return object->call(arguments);
}

Value Interpreter::run(const Expression& e, const Call& x) {
  const Value function = evaluate(*x.of);
  const Arguments arguments = arguments_of(x.arguments);
  at(e);
  return call(function, arguments);
}

Value Interpreter::filter(std::string_view name, const Value& subject, const Arguments& arguments) {
  budget_.step();
  const Builtin* builtin = find_filter(name);
  if (builtin == nullptr) {
    unknown_builtin("filter", name);
  }
  const Bound bound(name, builtin->parameters, arguments);
  return builtin->run({*this, budget_, subject, bound, arguments});
}

bool Interpreter::test(std::string_view name, const Value& subject, const Arguments& arguments) {
  budget_.step();
  const Builtin* builtin = find_builtin(tests(), name);
  if (builtin == nullptr) {
    unknown_builtin("test", name);
  }
  const Bound bound(name, builtin->parameters, arguments);
  return truth(builtin->run({*this, budget_, subject, bound, arguments}));
}

Value Interpreter::run(const Expression& e, const Filtered& x) {
  const Value subject = evaluate(*x.of);
  const Arguments arguments = arguments_of(x.arguments);
  at(e);
  return filter(x.name, subject, arguments);
}

Value Interpreter::run(const Expression& e, const Tested& x) {
  const Value subject = evaluate(*x.of);
  const Arguments arguments = arguments_of(x.arguments);
  at(e);
  return test(x.name, subject, arguments);
}

Value Interpreter::run(const Expression&, const BlockText&) { return block_texts_.back(); }

Value Interpreter::run(const Expression& e, const Unary& x) {
  const Value of = evaluate(*x.of);
  at(e);
  switch (x.sign) {
    case UnaryOperator::minus: return negate(of);
    case UnaryOperator::plus: return plus(of);
    case UnaryOperator::not_: return !truth(of);
  }
  return {};
}

Value Interpreter::run(const Expression& e, const Binary& x) {
  const Value left = evaluate(*x.left);
  const Value right = evaluate(*x.right);
  at(e);
  switch (x.sign) {
    case Operator::add: return add(left, right, budget_);
    case Operator::subtract: return subtract(left, right);
    case Operator::multiply: return multiply(left, right, budget_);
    case Operator::divide: return divide(left, right);
    case Operator::floor_divide: return floor_divide(left, right);
    case Operator::modulo: return modulo(left, right, budget_);
    case Operator::power: return power(left, right);
    case Operator::concat: return printed(left, budget_) + printed(right, budget_);
  }
  return {};
}

Value Interpreter::run(const Expression&, const Logic& x) {
  Value left = evaluate(*x.left);
  return truth(left) == x.is_and ? evaluate(*x.right) : left;
}

namespace {

bool holds(Relation relation, const Value& a, const Value& b, Budget& budget) {
  switch (relation) {
    case Relation::equal: return equal(a, b, budget);
    case Relation::unequal: return !equal(a, b, budget);
    case Relation::less: return compare(a, b, "<", budget) < 0;
    case Relation::less_equal: return compare(a, b, "<=", budget) <= 0;
    case Relation::greater: return compare(a, b, ">", budget) > 0;
    case Relation::greater_equal: return compare(a, b, ">=", budget) >= 0;
    case Relation::in: return contains(b, a, budget);
    case Relation::not_in: return !contains(b, a, budget);
  }
  return false;
}

}  // namespace

Value Interpreter::run(const Expression& e, const Comparison& x) {
  Value left = evaluate(*x.first);
  for (const auto& [relation, operand] : x.rest) {
    Value right = evaluate(*operand);
    at(e);
    if (!holds(relation, left, right, budget_)) {
      return false;
    }
    left = std::move(right);
  }
  return true;
}

Value Interpreter::run(const Expression&, const Conditional& x) {
  if (truth(evaluate(*x.condition))) {
    return evaluate(*x.then);
  }
  return x.otherwise != nullptr
             ? evaluate(*x.otherwise)
             : undefined(
                   "the inline if-expression evaluated to false and no else section was defined; "
                   "add an else");
}

}  // namespace ingot::jinja
