#include <CLI/CLI.hpp>
#include <iostream>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/base/progress.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/unfinished.h"
#include "ingot/cli/verify.h"
#include "ingot/io/gguf_figures.h"
#include "ingot/models/bert_gguf.h"
#include "ingot/models/export.h"

// ingot convert and ingot quantize: models from one kind of file to another.
namespace ingot {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string in;
  std::string out;
  std::string dtype;  // convert
  std::string type;   // quantize: of GGUF files
  int64_t bits = 0;   // quantize: of folders
  int64_t group = 64;
  bool verify = false;
  double max_growth = -1;
  bool drop_mtp = false;
  bool json = false;
};

constexpr const char* figure_keys[] = {"ingot.verify.logits", "ingot.verify.perplexity_before",
                                       "ingot.verify.perplexity_after", "ingot.verify.same_choice",
                                       "ingot.verify.tokens"};

std::map<std::string, double> figures_of(const Verification& found) {
  const double values[] = {found.logits, found.before, found.after, found.same_choice,
                           static_cast<double>(found.tokens)};
  std::map<std::string, double> out;
  for (size_t i = 0; i < std::size(figure_keys); ++i) {
    out[figure_keys[i]] = values[i];
  }
  return out;
}

bool is_gguf(const fs::path& path) {
  if (is_folder(path)) {
    return false;
  }
  const MappedFile file(path);
  return file.bytes().size() >= 4 &&
         std::string_view(reinterpret_cast<const char*>(file.bytes().data()), 4) == "GGUF";
}

GgmlType plain_type(DType dtype) { return *ggml_type_named(name(dtype)); }

struct Outcome {
  ExportResult result;
  std::optional<Verification> verification;
  std::string type;
};

StoredModel opened(const Arguments& arguments) {
  StoredModel out = open_model(arguments.in);
  return arguments.drop_mtp ? without_heads(std::move(out)) : out;
}

// Loads the result, compares, and refuses; the figures are then known.
std::optional<Verification> verified(const Arguments& arguments, const fs::path& written,
                                     GgmlType type) {
  if (!arguments.verify) {
    return std::nullopt;
  }
  const Verification found = compare_models(opened(arguments), open_model(written));
  const double allowed = arguments.max_growth >= 0 ? arguments.max_growth : allowed_growth(type);
  check_verification(found, allowed, arguments.out);
  return found;
}

void refuse_verify(const Arguments& arguments) {
  check(!arguments.verify, ErrorKind::config, arguments.in,
        ": --verify compares how models continue texts, which a bert does not");
}

Outcome to_gguf(const Arguments& arguments, std::optional<GgmlType> asked) {
  GgufMetadata more;
  for (const char* key : figure_keys) {
    if (arguments.verify) {
      more.set(key, GgufValue{0.0});
    }
  }
  Progress progress(arguments.out, 0, "values");
  const ExportProgress show = [&](int64_t done, int64_t) { progress.set(done); };
  Unfinished unfinished(arguments.out);
  Outcome out;
  GgmlType type = asked.value_or(GgmlType::f32);
  if (is_bert_folder(arguments.in)) {
    refuse_verify(arguments);
    type = asked.value_or(GgmlType::f32);
    out.result = write_bert_gguf(arguments.in, unfinished.path(), type);
  } else if (is_gguf(arguments.in)) {
    out.result = rewrite_gguf(GgufFile(arguments.in), unfinished.path(), asked, more, show);
  } else {
    const StoredModel model = opened(arguments);
    type = asked.value_or(plain_type(model.dtype));
    out.result = write_gguf(model, unfinished.path(), type, more, show);
  }
  out.type = asked || !is_gguf(arguments.in) ? name(type) : "the types it had";
  progress.finish();
  out.verification = verified(arguments, unfinished.path(), type);
  if (out.verification) {
    fill_gguf_figures(unfinished.path(), figures_of(*out.verification));
  }
  unfinished.finish();
  return out;
}

Outcome bert_to_folder(const Arguments& arguments, std::optional<DType> asked) {
  refuse_verify(arguments);
  const PretrainedBert loaded = load_bert_gguf(arguments.in, asked);
  Unfinished unfinished(arguments.out);
  save_bert(*loaded.model, unfinished.path());
  Outcome out;
  out.type = name(loaded.model->words.weight.dtype());
  out.result.tensors = static_cast<int64_t>(loaded.model->parameters().size());
  out.result.bytes = loaded.model->parameters().bytes();
  out.result.lacks.emplace_back(
      "no tokenizer.json: GGUF's vocabulary of a bert is not carried back");
  remove_tree(arguments.out);
  unfinished.finish();
  return out;
}

Outcome to_folder(const Arguments& arguments, std::optional<DType> asked,
                  const std::optional<PackedFormat>& packed = std::nullopt) {
  check(!file_exists(arguments.out) || is_folder(arguments.out), ErrorKind::config, arguments.out,
        ": is a file; a folder is written unless OUT ends with .gguf");
  check(!is_folder(arguments.out) || list_folder(arguments.out).empty(), ErrorKind::config,
        arguments.out, ": the folder exists and is not empty; give a new one");
  const bool is_bert = is_gguf(arguments.in) && is_bert_gguf(arguments.in);
  if (is_bert && !packed) {
    return bert_to_folder(arguments, asked);
  }
  const StoredModel model = opened(arguments);
  const DType dtype = asked.value_or(model.dtype);
  Progress progress(arguments.out, 0, "values");
  Unfinished unfinished(arguments.out);
  Outcome out;
  out.type = packed ? concat("int", packed->bits, " and ", name(dtype)) : name(dtype);
  out.result = write_folder(model, unfinished.path(), {.dtype = dtype, .packed = packed},
                            [&](int64_t done, int64_t) { progress.set(done); });
  progress.finish();
  const GgmlType as_exact_as = !packed            ? plain_type(dtype)
                               : packed->bits > 4 ? GgmlType::q8_0
                                                  : GgmlType::q4_0;
  out.verification = verified(arguments, unfinished.path(), as_exact_as);
  if (out.verification) {
    const fs::path file = unfinished.path() / "config.json";
    nlohmann::json config = parse_json_file(file);
    for (const auto& [key, value] : figures_of(*out.verification)) {
      config["ingot_verify"][key.substr(key.rfind('.') + 1)] = value;
    }
    write_file(file, config.dump(2) + "\n");
  }
  remove_tree(arguments.out);  // an empty folder
  unfinished.finish();
  return out;
}

void print_outcome(const Arguments& arguments, const Outcome& outcome) {
  if (arguments.json) {
    nlohmann::ordered_json out = {{"out", arguments.out},
                                  {"type", outcome.type},
                                  {"tensors", outcome.result.tensors},
                                  {"bytes", outcome.result.bytes},
                                  {"otherwise", outcome.result.otherwise},
                                  {"lacks", outcome.result.lacks},
                                  {"differs", outcome.result.differs}};
    if (outcome.verification) {
      out["verify"] = figures_of(*outcome.verification);
    }
    std::cout << out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    return;
  }
  std::cout << arguments.out << ": " << outcome.result.tensors << " tensors, "
            << outcome.result.bytes << " bytes, " << outcome.type << '\n';
  for (const std::string& line : outcome.result.otherwise) {
    std::cout << "  " << line << '\n';
  }
  for (const std::string& line : outcome.result.lacks) {
    std::cout << "  lacks: " << line << '\n';
  }
  for (const std::string& line : outcome.result.differs) {
    std::cout << "  elsewhere: " << line << '\n';
  }
  if (outcome.verification) {
    std::cout << "  verified: " << summary(*outcome.verification) << '\n';
  }
}

void check_paths(const Arguments& arguments) {
  check(file_exists(arguments.in), ErrorKind::io, arguments.in, ": no such file or folder");
  const bool same = file_exists(arguments.out) && fs::equivalent(arguments.in, arguments.out);
  check(!same, ErrorKind::config, arguments.out,
        ": IN and OUT are the same; give OUT another name");
}

void convert(const Arguments& arguments) {
  check_paths(arguments);
  std::optional<DType> dtype;
  if (!arguments.dtype.empty()) {
    dtype = dtype_named(arguments.dtype);
  }
  const bool gguf = fs::path(arguments.out).extension() == ".gguf";
  const auto type = dtype ? std::optional(plain_type(*dtype)) : std::nullopt;
  print_outcome(arguments, gguf ? to_gguf(arguments, type) : to_folder(arguments, dtype));
}

void quantize(const Arguments& arguments) {
  check_paths(arguments);
  const bool gguf = fs::path(arguments.out).extension() == ".gguf";
  check(arguments.type.empty() != (arguments.bits == 0), ErrorKind::config, arguments.out,
        ": give --type for a GGUF file (NAME.gguf), or --bits for a folder");
  if (arguments.bits > 0) {
    check(!gguf, ErrorKind::config, arguments.out,
          ": --bits writes a folder; for a GGUF file give --type");
    const PackedFormat packed = {.bits = arguments.bits, .group = arguments.group};
    print_outcome(arguments, to_folder(arguments, std::nullopt, packed));
    return;
  }
  check(gguf, ErrorKind::config, arguments.out,
        ": --type writes a GGUF file; end the name with .gguf, or give --bits for a folder");
  const auto type = ggml_type_named(arguments.type);
  check(type.has_value(), ErrorKind::config, "--type: '", arguments.type,
        "' is no type of GGUF files; known are Q8_0, Q6_K, Q5_K, Q5_1, Q5_0, Q4_K, Q4_1, Q4_0, "
        "IQ4_NL, IQ4_XS, Q3_K, Q2_K, BF16, F16, F32");
  print_outcome(arguments, to_gguf(arguments, type));
}

void add_shared_options(CLI::App& verb, Arguments& arguments) {
  verb.add_option("in", arguments.in,
                  "folder with config.json, GGUF file, or .bin of llama2.c or llm.c")
      ->required();
  verb.add_flag("--verify", arguments.verify,
                "read the result again and compare logits and perplexity with the original's");
  verb.add_option("--max-growth", arguments.max_growth,
                  "with --verify: how much the perplexity may grow, 0.05 being 5 %")
      ->check(CLI::Range(0.0, 1e9));
  verb.add_flag("--drop-mtp", arguments.drop_mtp,
                "leave out the heads that predict further tokens (model.mtp)");
  verb.add_flag("--json", arguments.json, "print JSON");
}

}  // namespace

void add_convert_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("convert", "Write a model as another kind of file.");
  verb->footer("Example: ingot convert runs/kjv/model kjv.gguf --dtype f16 --verify");
  auto arguments = std::make_shared<Arguments>();
  add_shared_options(*verb, *arguments);
  verb->add_option(
          "out", arguments->out,
          "NAME.gguf for a GGUF file; any other name for a folder in Hugging Face's layout")
      ->required();
  verb->add_option("--dtype", arguments->dtype, "write weights in this type (default: as they are)")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  verb->callback([arguments] { convert(*arguments); });
}

void add_quantize_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand(
      "quantize", "Write a model in fewer bits a weight: a GGUF file, or a folder of integers.");
  verb->footer(
      "Example: ingot quantize runs/kjv/model kjv.gguf --type Q4_K --verify\n"
      "         ingot quantize runs/kjv/model kjv-int4 --bits 4 --group 64 --verify");
  auto arguments = std::make_shared<Arguments>();
  add_shared_options(*verb, *arguments);
  verb->add_option("out", arguments->out, "NAME.gguf, or with --bits a folder")->required();
  verb->add_option("--type", arguments->type,
                   "of a GGUF file: Q8_0, Q6_K, Q5_K, Q4_K, IQ4_XS, Q3_K, Q2_K, …");
  verb->add_option("--bits", arguments->bits,
                   "of a folder in Hugging Face's layout: maps of the layers are rounded to "
                   "integers of 4 or 8 bits, packed as compressed-tensors does")
      ->check(CLI::IsMember({4, 8}));
  verb->add_option("--group", arguments->group,
                   "with --bits: columns that share a scale; 0: a whole row")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();
  verb->callback([arguments] { quantize(*arguments); });
}

}  // namespace ingot
