#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/base/json_library.h"
#include "ingot/base/progress.h"
#include "ingot/cli/adapter_model.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/unfinished.h"
#include "ingot/cli/verify.h"
#include "ingot/models/export.h"
#include "ingot/tensor/copy.h"
#include "ingot/text/load_tokenizer.h"

// ingot merge: adapters put into the weights of their base, with a certificate that the written
// model computes what base and adapters did.
namespace ingot {
namespace {

namespace fs = std::filesystem;

constexpr const char* merged_key = "ingot_merged";

struct Arguments {
  std::string base;
  std::string out;
  std::vector<std::string> adapters;
  std::string dtype;
  double max_difference = -1;
  bool any_base = false;
  bool adapter_only = false;
  bool json = false;
};

// How far the written model's logits may be from those of base and adapters, over the largest: what
// rounding the weights to the type costs, with room.
double allowed_difference(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 5e-2;
    case DType::f16: return 1e-2;
    default: return 1e-5;
  }
}

nlohmann::json merged_into(const std::string& published) {
  const nlohmann::json config = nlohmann::json::parse(published);
  return config.contains(merged_key) ? config[merged_key] : nlohmann::json::array();
}

// What config.json says of the adapters in the weights. Throws where one is in them already.
std::string noted(const StoredModel& base, const std::vector<AdapterChoice>& choices) {
  nlohmann::json config = nlohmann::json::parse(base.published);
  nlohmann::json merged = merged_into(base.published);
  for (const AdapterChoice& choice : choices) {
    const std::string hash = hash_file(fs::path(choice.path) / "adapter_model.safetensors");
    for (const auto& before : merged) {
      check(before.value("hash", "") != hash, ErrorKind::config, base.origin,
            ": holds this adapter already: ", choice.path, " (", hash.substr(0, 12),
            "); merge into the base it was trained on");
    }
    merged.push_back({{"adapter", fs::path(choice.path).lexically_normal().string()},
                      {"hash", hash},
                      {"weight", choice.weight}});
  }
  config[merged_key] = merged;
  return config.dump(2);
}

// The base with the weights that a model in memory has.
StoredModel with_weights(const StoredModel& base, const Decoder& model, std::string published) {
  StoredModel out = base;
  out.published = std::move(published);
  out.read = [parameters = model.parameters()](const std::string& ours, int64_t begin, int64_t end,
                                               std::span<float> values) {
    const Tensor& p = parameters.at(ours);
    const int64_t columns = columns_of(p);
    const auto all = p.values<float>();
    std::copy(all.begin() + begin * columns, all.begin() + end * columns, values.begin());
  };
  out.release = [] {};
  return out;
}

struct Certificate {
  DType dtype = DType::f32;
  Verification found;
  double allowed = 0;
};

void write_merged(const Arguments& arguments, const StoredModel& model, DType dtype,
                  const fs::path& path) {
  Progress progress(arguments.out, 0, "values");
  const ExportProgress show = [&](int64_t done, int64_t) { progress.set(done); };
  if (fs::path(arguments.out).extension() == ".gguf") {
    write_gguf(model, path, *ggml_type_named(name(dtype)), {}, show);
  } else {
    write_folder(model, path, {.dtype = dtype}, show);
  }
  progress.finish();
}

Certificate merge_weights(const Arguments& arguments, const StoredModel& base, Decoder& model,
                          std::vector<std::unique_ptr<peft::Adapters>>& adapters,
                          const std::string& published) {
  Certificate out;
  out.dtype = arguments.dtype.empty() ? base.dtype : *dtype_named(arguments.dtype);
  out.allowed =
      arguments.max_difference >= 0 ? arguments.max_difference : allowed_difference(out.dtype);
  const Probe probe(model);  // of base and adapters
  for (auto& one : adapters) {
    one->merge();
  }
  Unfinished unfinished(arguments.out);
  write_merged(arguments, with_weights(base, model, published), out.dtype, unfinished.path());
  const Pretrained written = load_stored(open_model(unfinished.path()), DType::f32);
  out.found = probe.compare(*written.model);
  check(out.found.logits <= out.allowed, ErrorKind::numeric, arguments.out,
        ": the merged model computes otherwise than base and adapter: ", summary(out.found),
        fmt::format("; allowed is {:.3g} (--max-difference sets it); nothing was written",
                    out.allowed));
  unfinished.finish();
  return out;
}

void check_out(const Arguments& arguments) {
  check(file_exists(arguments.base), ErrorKind::io, arguments.base, ": no such file or folder");
  const bool gguf = fs::path(arguments.out).extension() == ".gguf";
  check(gguf || !file_exists(arguments.out), ErrorKind::config, arguments.out,
        ": exists already; give a new name");
  check(!file_exists(arguments.out) || !fs::equivalent(arguments.base, arguments.out),
        ErrorKind::config, arguments.out, ": BASE and OUT are the same; give OUT another name");
  check(!arguments.adapter_only || gguf, ErrorKind::config, arguments.out,
        ": --adapter-only writes a GGUF file; end the name with .gguf");
  check(!arguments.adapter_only || arguments.adapters.size() == 1, ErrorKind::config,
        "--adapter-only: writes one adapter: ", arguments.adapters.size(), " --lora were given");
}

void print_certificate(const Arguments& arguments, const std::vector<AdapterChoice>& choices,
                       const Certificate& certificate) {
  if (arguments.json) {
    nlohmann::ordered_json out = {{"out", arguments.out},
                                  {"dtype", name(certificate.dtype)},
                                  {"logits_difference", certificate.found.logits},
                                  {"allowed", certificate.allowed},
                                  {"same_choice", certificate.found.same_choice},
                                  {"tokens", certificate.found.tokens}};
    std::cout << out.dump(2) << '\n';
    return;
  }
  std::cout << arguments.out << ": " << choices.size() << " adapter"
            << (choices.size() == 1 ? "" : "s") << " merged, " << name(certificate.dtype)
            << "\n  verified: " << summary(certificate.found) << '\n';
}

// Tokens of the tokenizer.json in a folder; `otherwise` where there is none.
int64_t tokens_of(const fs::path& folder, int64_t otherwise) {
  const fs::path file = folder / "tokenizer.json";
  return fs::exists(file) ? load_tokenizer(file).vocabulary_size() : otherwise;
}

// A warning where the adapter was trained beside tokens that its base does not have: their
// embeddings are in neither of the two.
void warn_of_tokens(const AdapterChoice& choice, const std::string& base, int64_t rows) {
  const int64_t known = tokens_of(base, rows);
  const int64_t tokens = tokens_of(choice.path, known);
  if (tokens > known) {
    std::cerr << choice.path << ": warning: its tokenizer has " << tokens
              << " tokens, the base has " << known
              << ": those added in training, such as a chat template's, are not in the merged "
                 "model\n";
  }
}

void merge(const Arguments& arguments) {
  check_out(arguments);
  std::vector<AdapterChoice> choices;
  for (const std::string& text : arguments.adapters) {
    choices.push_back(adapter_choice(text));
  }
  const StoredModel base = open_model(arguments.base);
  const std::string published = noted(base, choices);
  const std::string hash = arguments.any_base ? "" : base_hash(arguments.base);
  const Pretrained loaded = load_stored(base, DType::f32);
  auto adapters = put_on(*loaded.model, choices, hash);
  for (const AdapterChoice& choice : choices) {
    warn_of_tokens(choice, arguments.base, loaded.model->config().vocab);
  }
  for (const auto& one : adapters) {
    std::cerr << one->name() << ": " << one->coverage().text(one->config().kind) << '\n';
  }
  if (arguments.adapter_only) {
    write_gguf_adapter(*adapters[0], *loaded.model, base.model_type, arguments.out);
    std::cout << arguments.out << ": the adapter as llama.cpp takes it (--lora)\n";
    return;
  }
  print_certificate(arguments, choices,
                    merge_weights(arguments, base, *loaded.model, adapters, published));
}

}  // namespace

void add_merge_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand(
      "merge",
      "Put adapters into the weights of their base, and prove that the result is the same.");
  verb->footer(
      "Example: ingot merge base merged.gguf --lora runs/chat/adapter --dtype f16\n"
      "Several: ingot merge base merged --lora style=0.5 --lora facts");
  auto arguments = std::make_shared<Arguments>();
  verb->add_option("base", arguments->base, "folder or file of the model that was adapted")
      ->required();
  verb->add_option(
          "out", arguments->out,
          "NAME.gguf for a GGUF file; any other name for a folder in Hugging Face's layout")
      ->required();
  verb->add_option("--lora", arguments->adapters,
                   "folder of an adapter in PEFT's layout, or FOLDER=WEIGHT; any number of times")
      ->required();
  verb->add_option("--dtype", arguments->dtype, "write weights in this type (default: the base's)")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  verb->add_option(
          "--max-difference", arguments->max_difference,
          "how far logits may be from those of base and adapter, over the largest (default: "
          "1e-5 in f32, 1e-2 in f16, 5e-2 in bf16)")
      ->check(CLI::Range(0.0, 1e9));
  verb->add_flag("--any-base", arguments->any_base,
                 "take a base whose weights are not those the adapter was trained on");
  verb->add_flag("--adapter-only", arguments->adapter_only,
                 "write the adapter itself as a GGUF file, for llama.cpp's --lora");
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->callback([arguments] { merge(*arguments); });
}

}  // namespace ingot
