#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>

#include "ingot/base/hash.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/ckpt_bisect.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/tensor_list.h"
#include "ingot/io/checkpoint.h"
#include "ingot/io/release.h"
#include "ingot/ops/singular_values.h"
#include "ingot/tensor/tensor_dict.h"

// ingot ckpt: what is in checkpoints and model files, whether it is whole, and how two differ.
namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string path, other;
  std::string names = "**";
  bool hashes = false;
  bool json = false;
  int64_t count = 10;
};

void print(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

Json shape_json(const Shape& shape) { return std::vector<int64_t>(shape.begin(), shape.end()); }

std::string hash_of(const ListedTensor& tensor) {
  std::string out = hash_hex(tensor.bytes);
  release_pages(tensor.bytes);
  return out;
}

void print_listing(const Arguments& arguments) {
  const TensorListing found = list_tensors(arguments.path);
  size_t bytes = 0;
  Json all = Json::array();
  for (const ListedTensor& tensor : found.tensors) {
    bytes += tensor.bytes.size();
    Json row = {{"name", tensor.name},
                {"dtype", tensor.dtype},
                {"shape", shape_json(tensor.shape)},
                {"bytes", tensor.bytes.size()}};
    if (arguments.hashes) {
      row["hash"] = hash_of(tensor);
    }
    all.push_back(std::move(row));
  }
  if (arguments.json) {
    Json about = Json::object();
    for (const auto& [key, value] : found.about) {
      about[key] = value;
    }
    print({{"kind", found.kind}, {"about", about}, {"tensors", all}, {"bytes", bytes}});
    return;
  }
  std::cout << arguments.path << ": " << found.kind << ", " << found.tensors.size() << " tensors, "
            << bytes << " bytes\n";
  for (const auto& [key, value] : found.about) {
    std::cout << "  " << key << " = " << value << '\n';
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const ListedTensor& tensor = found.tensors[i];
    std::cout << "  " << tensor.name << ' ' << tensor.dtype << ' ' << tensor.shape << ' '
              << tensor.bytes.size() << " bytes"
              << (arguments.hashes ? " " + all[i]["hash"].get<std::string>() : "") << '\n';
  }
}

// Tensors with values that are not finite. Opening has checked all that a file's format demands.
Json not_finite(const TensorListing& found) {
  Json out = Json::array();
  for (const ListedTensor& tensor : found.tensors) {
    int64_t wrong = 0;
    for_each_piece(tensor, [&](std::span<const double> values, int64_t) {
      wrong += std::ranges::count_if(values, [](double value) { return !std::isfinite(value); });
    });
    if (wrong > 0) {
      out.push_back({{"name", tensor.name}, {"values", wrong}});
    }
  }
  return out;
}

void verify(const Arguments& arguments) {
  const std::filesystem::path checkpoint = checkpoint_at(arguments.path);
  if (!checkpoint.empty()) {
    read_checkpoint(checkpoint);  // every byte against the hashes of its manifest
  }
  const TensorListing found = list_tensors(arguments.path);
  const Json wrong = not_finite(found);
  const char* how = checkpoint.empty() ? "lengths and places hold; such files have no hashes"
                                       : "every hash holds";
  if (arguments.json) {
    print({{"kind", found.kind},
           {"tensors", found.tensors.size()},
           {"checked", how},
           {"not_finite", wrong}});
  } else {
    std::cout << arguments.path << ": " << found.kind << ": " << found.tensors.size()
              << " tensors, " << how << '\n';
  }
  check(wrong.empty(), ErrorKind::numeric, arguments.path, ": ",
        wrong.empty() ? "" : wrong[0]["name"].get<std::string>(),
        ": has values that are not finite, as ", wrong.size(), " of ", found.tensors.size(),
        " tensors do");
}

// Values from `begin` on, of a tensor whose blocks may lie otherwise.
void read_any(const ListedTensor& tensor, int64_t begin, std::span<double> out) {
  const auto end = begin + static_cast<int64_t>(out.size());
  const int64_t first = begin / tensor.step * tensor.step;
  const int64_t last = (end + tensor.step - 1) / tensor.step * tensor.step;
  std::vector<double> whole(static_cast<size_t>(last - first));
  tensor.read(first, last, whole);
  std::copy_n(whole.begin() + (begin - first), out.size(), out.begin());
}

// How two tensors of one name differ; empty where they are the same.
Json difference(const ListedTensor& a, const ListedTensor& b) {
  Json out = {{"name", a.name}};
  if (a.shape != b.shape) {
    out["shapes"] = {shape_json(a.shape), shape_json(b.shape)};
    return out;
  }
  const bool same_type = a.dtype == b.dtype;
  if (same_type && a.bytes.size() == b.bytes.size() &&
      (a.bytes.empty() || std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0)) {
    return {};
  }
  if (!same_type) {
    out["dtypes"] = {a.dtype, b.dtype};
  }
  double most = 0;
  int64_t where = 0;
  int64_t differing = 0;
  std::array<double, 2> values{};
  std::vector<double> y;
  for_each_piece(a, [&](std::span<const double> x, int64_t begin) {
    y.resize(x.size());
    read_any(b, begin, y);
    for (size_t i = 0; i < x.size(); ++i) {
      const double now = std::abs(x[i] - y[i]);
      const bool differs = !(now == 0) && !(std::isnan(x[i]) && std::isnan(y[i]));
      differing += differs ? 1 : 0;
      if (differs && !(now <= most)) {
        most = now;
        where = begin + static_cast<int64_t>(i);
        values = {x[i], y[i]};
      }
    }
  });
  out["differing"] = differing;
  out["largest"] = most;
  if (differing > 0) {
    out["at"] = where;
    out["values"] = values;
  }
  return out;
}

std::string spelled(const Json& one) {
  if (one.contains("only_in")) {
    return concat("only in ", one["only_in"].get<std::string>());
  }
  if (one.contains("shapes")) {
    return concat("shapes ", one["shapes"][0].dump(), " and ", one["shapes"][1].dump());
  }
  std::string out = one.contains("dtypes") ? concat(one["dtypes"][0].get<std::string>(), " and ",
                                                    one["dtypes"][1].get<std::string>(), ", ")
                                           : "";
  if (one["differing"] == 0) {
    return out + "the same values";
  }
  return out + concat(one["differing"].get<int64_t>(), " values differ, most by ",
                      one["largest"].get<double>(), " at ", one["at"].get<int64_t>(), ": ",
                      one["values"][0].dump(), " and ", one["values"][1].dump());
}

void diff(const Arguments& arguments) {
  const TensorListing a = list_tensors(arguments.path);
  const TensorListing b = list_tensors(arguments.other);
  std::map<std::string, const ListedTensor*> of_b;
  for (const ListedTensor& tensor : b.tensors) {
    of_b[tensor.name] = &tensor;
  }
  Json found = Json::array();
  for (const ListedTensor& tensor : a.tensors) {
    const auto at = of_b.find(tensor.name);
    if (at == of_b.end()) {
      found.push_back({{"name", tensor.name}, {"only_in", arguments.path}});
      continue;
    }
    if (Json one = difference(tensor, *at->second); !one.empty()) {
      found.push_back(std::move(one));
    }
    release_pages(tensor.bytes);
    release_pages(at->second->bytes);
    of_b.erase(at);
  }
  for (const auto& [name, unused] : of_b) {
    found.push_back({{"name", name}, {"only_in", arguments.other}});
  }
  if (arguments.json) {
    print({{"differences", found}});
  } else {
    std::cout << (found.empty() ? "the tensors are the same, bit for bit"
                                : concat(found.size(), " tensors differ"))
              << '\n';
    const size_t shown = arguments.count == 0
                             ? found.size()
                             : std::min(found.size(), static_cast<size_t>(arguments.count));
    for (size_t i = 0; i < shown; ++i) {
      std::cout << "  " << found[i]["name"].get<std::string>() << ": " << spelled(found[i]) << '\n';
    }
    if (shown < found.size()) {
      std::cout << "  … --count 0 shows all\n";
    }
  }
  if (!found.empty()) {
    throw CLI::RuntimeError(1);  // as diff(1): nothing is wrong, and they are not the same
  }
}

void bisect(const Arguments& arguments) {
  const Bisection found = bisect_runs(arguments.path, arguments.other);
  if (!print_bisection(found, arguments.json, arguments.count)) {
    throw CLI::RuntimeError(1);
  }
}

// Every matrix of a file, a tensor of more dimensions as rows of its last.
void ranks(const Arguments& arguments) {
  const TensorListing found = list_tensors(arguments.path);
  Json all = Json::array();
  for (const ListedTensor& tensor : found.tensors) {
    if (tensor.shape.rank() < 2 || tensor.shape.elements() == 0 ||
        !matches(arguments.names, tensor.name)) {
      continue;
    }
    GramMatrix gram(tensor.shape.elements() / tensor.shape.size(-1), tensor.shape.size(-1));
    for_each_piece(tensor, [&](std::span<const double> values, int64_t) { gram.add(values); });
    const std::vector<double> singular = gram.singular_values();
    all.push_back({{"name", tensor.name},
                   {"shape", shape_json(tensor.shape)},
                   {"rank", numerical_rank(singular, gram.tolerance())},
                   {"effective_rank", effective_rank(singular)},
                   {"rank_of_90", rank_holding(singular, 0.9)},
                   {"largest", singular.front()},
                   {"smallest", singular.back()}});
  }
  if (arguments.json) {
    print({{"kind", found.kind}, {"matrices", all}});
    return;
  }
  std::cout << "rank: singular values above the largest times "
            << "eps of f32 and the larger side; "
            << "effective: e^entropy of their shares; 90 %: that many hold 90 % of the squares\n";
  for (const Json& one : all) {
    std::cout << fmt::format(
        "  {} {}: rank {}, effective {:.1f}, 90 % {}, singular values {:.4g} to {:.4g}\n",
        one["name"].get<std::string>(), one["shape"].dump(), one["rank"].get<int64_t>(),
        one["effective_rank"].get<double>(), one["rank_of_90"].get<int64_t>(),
        one["largest"].get<double>(), one["smallest"].get<double>());
  }
}

}  // namespace

void add_ckpt_command(CLI::App& program) {
  CLI::App* verb =
      program.add_subcommand("ckpt", "Look into runs, checkpoints, safetensors and GGUF files.");
  verb->footer("Example: ingot ckpt ls runs/kjv");
  verb->require_subcommand(1);
  auto arguments = std::make_shared<Arguments>();
  const auto add = [&](const char* name, const char* help, const char* example,
                       void (*run)(const Arguments&)) {
    CLI::App* one = verb->add_subcommand(name, help);
    one->footer(example);
    one->add_option("path", arguments->path,
                    "run, checkpoint, folder of a model, safetensors or GGUF file")
        ->required();
    one->add_flag("--json", arguments->json, "print JSON");
    one->callback([arguments, run] { run(*arguments); });
    return one;
  };
  CLI::App* ls = add("ls", "Names, types, shapes and bytes.", "Example: ingot ckpt ls model.gguf",
                     print_listing);
  ls->add_flag("--hashes", arguments->hashes, "with XXH3-128 of each tensor's bytes");
  add("verify", "Check lengths, places, hashes and that values are finite.",
      "Example: ingot ckpt verify runs/kjv", verify);
  CLI::App* spectra = add("ranks", "Numerical and effective rank of every matrix.",
                          "Example: ingot ckpt ranks model --names '**.q_proj.weight'", ranks);
  spectra->add_option("--names", arguments->names,
                      "tensors to take: * stands for letters within a part of a name, ** for any");
  CLI::App* between =
      add("diff", "The tensors in which two differ; the exit code is 1 where some do.",
          "Example: ingot ckpt diff runs/a runs/b", diff);
  CLI::App* along = add("bisect",
                        "The first checkpoint in which two runs differ, and its tensors; the exit "
                        "code is 1 where there is one.",
                        "Example: ingot ckpt bisect runs/a runs/b", bisect);
  for (CLI::App* two : {between, along}) {
    two->add_option("other", arguments->other, "the same of another")->required();
    two->add_option("--count", arguments->count, "tensors to show; 0: all")
        ->check(CLI::NonNegativeNumber);
  }
}

}  // namespace ingot
