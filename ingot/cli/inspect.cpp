#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/chain.h"
#include "ingot/autograd/grad_mode.h"
#include "ingot/autograd/record.h"
#include "ingot/autograd/watch.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/loaded_model.h"
#include "ingot/cli/number_checks.h"
#include "ingot/cli/run_data.h"
#include "ingot/cli/session.h"
#include "ingot/ops/elementwise.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

// ingot inspect: what happens inside a model: the graph of a step, and where attention looks.
namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

// Two functions of one number whose derivative can be followed by hand.
struct Example {
  const char* text;
  double at;
  Tensor (*function)(const Tensor& x);
};

Tensor nested(const Tensor& x) { return sin(exp(square(x))); }
Tensor branching(const Tensor& x) {
  const Tensor s = square(x);
  return add(mul(sin(s), exp(x)), log(s));
}

constexpr Example examples[] = {
    {"sin(exp(x²))", 0.5, nested},
    {"sin(s)·exp(x) + log(s), s = x²", 1.5, branching},
};

void print_example(const Example& example) {
  Tensor x = scalar(example.at, DType::f64);
  require_grad(x);
  const Tensor y = example.function(x);
  std::map<const Node*, std::string> names;
  const auto name_of = [&](const Node* node) {
    if (node->leaf()) {
      return std::string("x");
    }
    const auto [at, fresh] = names.try_emplace(node, "");
    if (fresh) {
      at->second = fmt::format("{}{}", node->op, names.size());
    }
    return at->second;
  };
  std::cout << fmt::format("y = {} at x = {}: y = {:.12g}\n", example.text, example.at, y.item());
  std::cout << fmt::format("  {:<10} {:<10} {:>18}   {:>18}   {:>18}\n", "operation", "input",
                           "dy, arrived", "· ∂y/∂x, its own", "= dx, handed on");
  double sum = 0;
  for (const ChainLink& link : chain_of(y)) {
    std::cout << fmt::format("  {:<10} {:<10} {:>18.12g}   {:>17.12g}   {:>18.12g}\n",
                             name_of(link.of), name_of(link.to), link.arrived.item(),
                             link.local.item(), link.handed_on.item());
    sum += link.to->leaf() ? link.handed_on.item() : 0;
  }
  std::cout << fmt::format("  dy/dx = {:.12g}, the sum of what arrived at x\n\n", sum);
}

double norm_of(const Tensor& x) {
  const Tensor wide = converted(dense(x), DType::f64);
  double sum = 0;
  for (const double value : wide.values<double>()) {
    sum += value * value;
  }
  return std::sqrt(sum);
}

// One operation of a step, as the forward made it and the backward came back to it.
struct GraphLine {
  std::string part;  // of the model, "layers.0"
  std::string op;
  Shape shape;
  double norm = 0;                // of its result
  std::vector<double> gradients;  // norms of what it handed on, in order of its inputs
};

class GraphWatch : public Watch {
 public:
  void made(std::string_view op, const TensorList& ys) override {
    const Tensor& y = ys.front();
    if (y.node() != nullptr && is_float(y.dtype())) {
      made_[y.node().get()] = {
          std::string(current_part()), std::string(op), y.shape(), norm_of(y), {}};
    }
  }
  void differentiated(const Node& node, const Formula&, const TensorList& parts) override {
    const auto at = made_.find(&node);
    if (at == made_.end()) {
      return;
    }
    if (seen_.empty() || seen_.back().first != &node) {
      seen_.emplace_back(&node, at->second);
    }
    for (const Tensor& part : parts) {
      seen_.back().second.gradients.push_back(part.defined() ? norm_of(part) : 0);
    }
  }
  std::vector<GraphLine> lines() const {
    std::vector<GraphLine> out;
    for (const auto& [node, line] : seen_) {
      out.push_back(line);
    }
    return out;
  }

 private:
  std::map<const Node*, GraphLine> made_;
  std::vector<std::pair<const Node*, GraphLine>> seen_;  // in the order of the backward
};

std::vector<GraphLine> graph_of(const std::string& path, const std::vector<std::string>& set) {
  Recipe recipe = read_recipe(path, set);
  const RunData data = open_run_data(recipe, std::filesystem::path("runs") / ".tokens");
  Session session(recipe, cpu_device, data.added);
  GraphWatch watch;
  const Loss loss = session.objective()(data.batch(0));
  backward(div(loss.sum, scalar(loss.count, loss.sum.dtype())));
  return watch.lines();
}

struct GraphArguments {
  std::string recipe;
  std::vector<std::string> assignments;
  bool json = false;
};

void show_graph(const GraphArguments& arguments) {
  if (arguments.recipe.empty()) {
    for (const Example& example : examples) {
      print_example(example);
    }
    return;
  }
  const std::vector<GraphLine> lines = graph_of(arguments.recipe, arguments.assignments);
  if (arguments.json) {
    Json out = Json::array();
    for (const GraphLine& line : lines) {
      Json shape = Json::array();
      for (const int64_t size : line.shape) {
        shape.push_back(size);
      }
      out.push_back({{"part", line.part},
                     {"op", line.op},
                     {"shape", shape},
                     {"norm", line.norm},
                     {"gradients", line.gradients}});
    }
    std::cout << out.dump() << '\n';
    return;
  }
  std::cout << fmt::format("{:<14} {:<24} {:<22} {:>10}  {}\n", "part", "operation", "result",
                           "‖result‖", "‖gradient‖ of each input");
  for (const GraphLine& line : lines) {
    std::string gradients;
    for (const double norm : line.gradients) {
      gradients += fmt::format(" {:>9.3g}", norm);
    }
    std::cout << fmt::format("{:<14} {:<24} {:<22} {:>10.4g} {}\n", line.part, line.op,
                             concat(line.shape), line.norm, gradients);
  }
}

// The weights of every attention of a forward.
class AttentionWatch : public Watch {
 public:
  void made(std::string_view, const TensorList&) override {}
  bool wants(std::string_view what) const override { return what == "attention weights"; }
  void shown(std::string_view what, const TensorList& xs) override {
    if (what == "attention weights") {
      layers.push_back(xs.front());
    }
  }

  TensorList layers;  // [1, H, T, S] each, f32
};

struct AttentionArguments {
  ModelArguments model;
  std::string text = "In the beginning God created the heaven and the earth.";
  int64_t layer = -1;
  int64_t head = -1;
  bool json = false;
};

struct Head {
  int64_t layer = 0, head = 0, tokens = 0;
  std::span<const float> weights;  // [T, T]

  float at(int64_t query, int64_t key) const {
    return weights[static_cast<size_t>(query * tokens + key)];
  }
};

std::vector<Head> heads_of(const TensorList& layers, const AttentionArguments& arguments) {
  std::vector<Head> out;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const Tensor& w = layers[layer];
    const int64_t heads = w.size(1), tokens = w.size(2);
    check(arguments.head < heads, ErrorKind::config, "inspect attention: --head ", arguments.head,
          ": layers have ", heads, " heads, the first is 0");
    for (int64_t head = 0; head < heads; ++head) {
      if ((arguments.layer < 0 || arguments.layer == static_cast<int64_t>(layer)) &&
          (arguments.head < 0 || arguments.head == head)) {
        const auto all = w.values<float>();
        const auto count = static_cast<size_t>(tokens * tokens);
        out.push_back({static_cast<int64_t>(layer), head, tokens,
                       all.subspan(static_cast<size_t>(head) * count, count)});
      }
    }
  }
  return out;
}

// What a head looks at, as means over the queries.
void print_heads(const std::vector<Head>& heads) {
  std::cout << fmt::format("{:>5} {:>5} {:>9} {:>9} {:>9} {:>12} {:>9}\n", "layer", "head",
                           "itself", "one back", "first", "tokens back", "entropy");
  for (const Head& head : heads) {
    double self = 0, before = 0, first = 0, back = 0, entropy = 0;
    for (int64_t q = 0; q < head.tokens; ++q) {
      self += head.at(q, q);
      before += q > 0 ? head.at(q, q - 1) : 0;
      first += head.at(q, 0);
      for (int64_t k = 0; k < head.tokens; ++k) {
        const double p = head.at(q, k);
        back += p * static_cast<double>(q - k);
        entropy -= p > 0 ? p * std::log(p) : 0;
      }
    }
    const auto n = static_cast<double>(head.tokens);
    std::cout << fmt::format("{:>5} {:>5} {:>8.1f}% {:>8.1f}% {:>8.1f}% {:>12.2f} {:>9.3f}\n",
                             head.layer, head.head, 100 * self / n, 100 * before / n,
                             100 * first / n, back / n, entropy / n);
  }
}

// Rows are queries, columns keys; the darker, the more of the query's weight.
void print_matrix(const Head& head, const std::vector<std::string>& tokens) {
  constexpr const char* shades[] = {" ", "·", "░", "▒", "▓", "█"};
  for (int64_t q = 0; q < head.tokens; ++q) {
    std::string row;
    double sum = 0;
    for (int64_t k = 0; k < head.tokens; ++k) {
      const double p = head.at(q, k);
      sum += p;
      row += shades[p < 0.01 ? 0 : std::min(5, 1 + static_cast<int>(p * 5))];
    }
    std::cout << fmt::format("{:>4} {:<16} |{}| {:.6f}\n", q, tokens[static_cast<size_t>(q)], row,
                             sum);
  }
}

void print_heads_json(const std::vector<Head>& heads, const std::vector<std::string>& tokens) {
  Json out;
  out["tokens"] = tokens;
  for (const Head& head : heads) {
    Json rows = Json::array();
    for (int64_t q = 0; q < head.tokens; ++q) {
      Json row = Json::array();
      for (int64_t k = 0; k < head.tokens; ++k) {
        row.push_back(head.at(q, k));
      }
      rows.push_back(std::move(row));
    }
    out["heads"].push_back({{"layer", head.layer}, {"head", head.head}, {"weights", rows}});
  }
  std::cout << out.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

void show_attention(const AttentionArguments& arguments) {
  const LoadedModel loaded = load_model(arguments.model);
  const Decoder& model = loaded.decoder();
  const int64_t layers = model.config().layers;
  check(arguments.layer < layers, ErrorKind::config, "inspect attention: --layer ", arguments.layer,
        ": the model has ", layers, " layers, the first is 0");
  const Tokens ids = loaded.text().prompt(arguments.text);
  check(static_cast<int64_t>(ids.size()) <= model.config().context, ErrorKind::config,
        "inspect attention: --text has ", ids.size(), " tokens, the model's context ",
        model.config().context, "; give a shorter one");
  AttentionWatch watch;
  {
    const NoGrad no_grad;
    model.hidden(tensor_of(ids, {1, static_cast<int64_t>(ids.size())}));
  }
  check(watch.layers.size() == static_cast<size_t>(layers), ErrorKind::internal,
        "inspect attention: ", watch.layers.size(), " attentions were seen in ", layers, " layers");
  std::vector<std::string> tokens;
  for (const int64_t id : ids) {
    std::string text = loaded.text().bytes_of(id);
    std::replace(text.begin(), text.end(), '\n', ' ');
    tokens.push_back(std::move(text));
  }
  const std::vector<Head> heads = heads_of(watch.layers, arguments);
  if (arguments.json) {
    print_heads_json(heads, tokens);
  } else if (heads.size() == 1) {
    print_matrix(heads.front(), tokens);
  } else {
    print_heads(heads);
  }
}

}  // namespace

void add_inspect_command(CLI::App& program) {
  CLI::App* verb =
      program.add_subcommand("inspect", "Inside a model: the graph of a step, attention weights.");
  verb->require_subcommand(1);
  verb->footer("Example: ingot inspect attention runs/kjv/model --layer 0 --head 2");
  auto graph = std::make_shared<GraphArguments>();
  CLI::App* steps = verb->add_subcommand(
      "graph", "Every operation of a recipe's first batch, as the backward comes to it.");
  steps->add_option("recipe", graph->recipe,
                    "TOML file; without, two small functions whose chain rule is written out");
  steps->add_option("--set", graph->assignments, "KEY=VALUE over the recipe");
  steps->add_flag("--json", graph->json, "print JSON");
  steps->footer("Example: ingot inspect graph recipes/kjv.toml --set model.layers=1");
  steps->callback([graph] { show_graph(*graph); });
  auto attention = std::make_shared<AttentionArguments>();
  attention->model.dtype = "f32";
  CLI::App* looks =
      verb->add_subcommand("attention", "Where each head of a model looks in a text.");
  add_model_options(*looks, attention->model);
  looks->add_option("--text", attention->text, "that the model reads")->capture_default_str();
  looks->add_option("--layer", attention->layer, "this one alone")->check(whole_number());
  looks->add_option("--head", attention->head, "this one alone; with --layer: all its weights")
      ->check(whole_number());
  looks->add_flag("--json", attention->json, "print JSON, with all weights");
  looks->footer("Example: ingot inspect attention runs/kjv/model --text \"And God said\"");
  looks->callback([attention] { show_attention(*attention); });
}

}  // namespace ingot
