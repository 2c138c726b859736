#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ingot/text/jinja_value.h"

namespace ingot::jinja {

// A template as the parser understood it.

struct Expression;
using Expr = std::unique_ptr<Expression>;  // empty where a part is left out

struct CallArguments {
  std::vector<Expr> positional;
  std::vector<std::pair<std::string, Expr>> named;
  Expr rest;        // *rest
  Expr rest_named;  // **rest_named
};

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct ListDisplay {
  std::vector<Expr> items;
  bool tuple = false;
};
struct DictDisplay {
  std::vector<std::pair<Expr, Expr>> items;
};
struct Attribute {  // of.name
  Expr of;
  std::string name;
};
struct Subscript {  // of[key]
  Expr of, key;
};
struct Slice {  // of[start:stop:step]
  Expr of, start, stop, step;
};
struct Call {
  Expr of;
  CallArguments arguments;
};
struct Filtered {  // of | name(arguments)
  Expr of;
  std::string name;
  CallArguments arguments;
};
struct Tested {  // of is name arguments
  Expr of;
  std::string name;
  CallArguments arguments;
};
struct BlockText {};  // the text of the block that a filter block or set block holds
enum class UnaryOperator : uint8_t { minus, plus, not_ };
struct Unary {
  UnaryOperator sign;
  Expr of;
};
enum class Operator : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  concat
};
struct Binary {
  Operator sign;
  Expr left, right;
};
struct Logic {
  bool is_and;
  Expr left, right;
};
enum class Relation : uint8_t {
  equal,
  unequal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in
};
struct Comparison {  // a < b < c is a < b and b < c, with b evaluated once
  Expr first;
  std::vector<std::pair<Relation, Expr>> rest;
};
struct Conditional {  // then if condition else otherwise
  Expr condition, then, otherwise;
};

struct Expression {
  using Node =
      std::variant<Literal, Name, ListDisplay, DictDisplay, Attribute, Subscript, Slice, Call,
                   Filtered, Tested, BlockText, Unary, Binary, Logic, Comparison, Conditional>;
  Node node;
  int32_t line = 1;
  int32_t height = 1;         // of the tree below
  size_t begin = 0, end = 0;  // bytes of the source
};

struct Statement;
using Body = std::vector<Statement>;

struct Target;
struct NamespaceMember {  // names.member
  std::string names, member;
};
struct Target {  // what an assignment sets: a variable, a member, or several by unpacking
  std::variant<std::string, NamespaceMember, std::vector<Target>> to;
};

struct Function {  // a macro, or the body of a call block
  std::string name;
  std::vector<std::pair<std::string, Expr>> parameters;  // with defaults or none
  Body body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct Data {
  std::string text;
};
struct Output {
  std::vector<Expr> values;
};
struct If {
  std::vector<std::pair<Expr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  Expr over, condition;
  bool recursive = false;
  Body body, otherwise;
};
struct Set {
  Target target;
  Expr value;
};
struct SetBlock {
  Target target;
  Expr filtered;  // filters over BlockText; may be empty
  Body body;
};
struct Macro {
  Function function;
};
struct CallBlock {
  Expr call;
  Function caller;
};
struct FilterBlock {
  Expr filtered;
  Body body;
};
struct With {
  std::vector<std::pair<Target, Expr>> names;
  Body body;
};
struct Generation {  // marks what the model writes; prints its body
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  using Node = std::variant<Data, Output, If, For, Set, SetBlock, Macro, CallBlock, FilterBlock,
                            With, Generation, Break, Continue>;
  Node node;
  int32_t line = 1;
  size_t begin = 0, end = 0;  // bytes of the source: its first tag
};

struct Tree {
  std::string source;  // normalized; places count its bytes
  Body body;
};

// Parses a template. Throws Error(format), the message beginning with the line and naming the tag.
Tree parse_template(std::string_view source);

}  // namespace ingot::jinja
