#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <fstream>
#include <iostream>
#include <oneapi/dnnl/dnnl.hpp>

#include "ingot/base/cpu_features.h"
#include "ingot/base/json_library.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/commands.h"
#include "ingot/kernels/cpu/dispatch.h"
#include "ingot/text/chat_check.h"
#include "ingot/text/load_tokenizer.h"
#include "ingot/train/machine_peak.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

// One thing looked at: what was found, and what it costs if it is missing.
struct Finding {
  bool good = true;
  std::string what;
  std::string value;
  std::string advice;  // only where not good
};

Finding feature(bool present, const char* what, const char* cost) {
  return {present, what, present ? "yes" : "no", present ? "" : cost};
}

std::vector<Finding> instructions(const CpuFeatures& cpu) {
  return {
      feature(cpu.avx2 && cpu.fma && cpu.f16c, "AVX2 + FMA + F16C",
              "required: Ingot does not run without them"),
      feature(cpu.avx512f && cpu.avx512bw && cpu.avx512vl, "AVX-512",
              "kernels run on AVX2: about half the arithmetic per instruction"),
      feature(cpu.avx512_bf16, "AVX-512 BF16",
              "bf16 products are computed through f32: bf16 saves memory, not time"),
      feature(cpu.avx512_vnni, "AVX-512 VNNI",
              "int8 products are computed without dot-product instructions"),
      feature(cpu.amx_tile && cpu.amx_bf16, "AMX bf16",
              "no matrix unit: bf16 products run at vector speed, several times slower than on "
              "Xeons since 2023"),
      feature(cpu.amx_int8, "AMX int8", "no matrix unit for int8 products"),
  };
}

std::string first_line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Finding huge_pages() {
  const std::string line = first_line_of("/sys/kernel/mm/transparent_hugepage/enabled");
  const bool on = line.find("[never]") == std::string::npos && !line.empty();
  return {on, "transparent huge pages", line.empty() ? "unknown" : line,
          on ? ""
             : "page faults and TLB misses cost a few percent; enable with: echo madvise > "
               "/sys/kernel/mm/transparent_hugepage/enabled"};
}

std::vector<Finding> resources(const Machine& found) {
  const int64_t threads = omp_get_max_threads();
  std::vector<Finding> out;
  out.push_back({true, "processor", found.model, ""});
  out.push_back(
      {threads >= found.cores_usable, "threads",
       fmt::format("{} of {} usable cores ({} in the machine)", threads, found.cores_usable,
                   found.cores_total),
       threads >= found.cores_usable ? "" : "OMP_NUM_THREADS leaves cores idle; unset it"});
  const bool room = found.memory_available_bytes > (int64_t{2} << 30);
  out.push_back({room, "memory",
                 fmt::format("{} available of {}", text_bytes(found.memory_available_bytes),
                             text_bytes(found.memory_bytes)),
                 room ? "" : "under 2 GiB is free: only small models will fit"});
  out.push_back({true, "caches",
                 fmt::format("L1 {}, L2 {}, L3 {}", text_bytes(found.l1_bytes),
                             text_bytes(found.l2_bytes), text_bytes(found.l3_bytes)),
                 ""});
  return out;
}

std::vector<Finding> libraries() {
  const dnnl_version_t* dnnl = dnnl_version();
  const bool openmp = dnnl->cpu_runtime == DNNL_RUNTIME_OMP;
  return {{openmp, "oneDNN",
           fmt::format("{}.{}.{}, {}", dnnl->major, dnnl->minor, dnnl->patch,
                       openmp ? "OpenMP threads" : "another thread pool"),
           openmp ? "" : "two thread pools compete for the cores; use a oneDNN built with OpenMP"}};
}

std::vector<Finding> speed() {
  std::vector<Finding> out;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    out.push_back({true, fmt::format("matrix product, {}", name(dtype)),
                   fmt::format("{}/s measured", text_flops(measured_peak_flops(dtype))), ""});
  }
  return out;
}

void print(const std::string& title, const std::vector<Finding>& findings) {
  fmt::print("{}\n", title);
  for (const Finding& finding : findings) {
    fmt::print("  {} {:<24} {}\n", finding.good ? "✓" : "✗", finding.what, finding.value);
    if (!finding.advice.empty()) {
      fmt::print("      {}\n", finding.advice);
    }
  }
}

Json to_json(const std::vector<Finding>& findings) {
  Json out = Json::array();
  for (const Finding& finding : findings) {
    out.push_back({{"what", finding.what},
                   {"value", finding.value},
                   {"good", finding.good},
                   {"advice", finding.advice}});
  }
  return out;
}

void examine(bool json, bool skip_speed) {
  const std::vector<std::pair<std::string, std::vector<Finding>>> sections = {
      {"machine", resources(machine())},
      {"instructions", instructions(cpu_features())},
      {"dispatch", {{true, "kernels run with", std::string(name(kernels::simd_level())), ""}}},
      {"system", {huge_pages()}},
      {"libraries", libraries()},
      {"speed", skip_speed ? std::vector<Finding>{} : speed()},
  };
  Json out;
  for (const auto& [title, findings] : sections) {
    if (findings.empty()) {
      continue;
    }
    if (json) {
      out[title] = to_json(findings);
    } else {
      print(title, findings);
    }
  }
  if (json) {
    std::cout << out.dump(2) << '\n';
  }
}

// Whether training and inference agree on the chat template of a model folder.
void examine_model(const std::string& folder, bool json) {
  const ChatTemplate chat = ChatTemplate::load(folder);
  ChatCheckOptions options;
  if (!tokenizer_files(folder).empty()) {
    const auto tokenizer = std::make_shared<const Tokenizer>(load_tokenizer(folder));
    options.encode = [tokenizer](std::string_view text) {
      const TokenIds ids = tokenizer->encode(text, {.parse_special = true});
      return std::vector<int64_t>(ids.begin(), ids.end());
    };
    options.bos_id = tokenizer->bos();
  }
  const std::vector<ChatFinding> findings = check_chat(chat, options);
  if (json) {
    constexpr std::array<std::string_view, 3> states = {"good", "bad", "note"};
    Json out = Json::array();
    for (const ChatFinding& one : findings) {
      out.push_back({{"conversation", one.conversation},
                     {"what", one.subject},
                     {"state", states[static_cast<size_t>(one.state)]},
                     {"found", one.found}});
    }
    std::cout << Json({{"chat template", out}}).dump(2) << '\n';
  } else {
    fmt::print("chat template\n{}",
               text_of(findings, isatty(STDOUT_FILENO) != 0 ? Colours::terminal : Colours::none));
  }
  check(is_good(findings), ErrorKind::format, folder,
        ": the chat template does not fit training; mend what is marked ✗");
}

}  // namespace

void add_doctor_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("doctor",
                                          "What this machine offers, what is off, and what that "
                                          "costs; with a model, whether training and "
                                          "inference agree on its chat template.");
  verb->footer("Example: ingot doctor\n         ingot doctor models/qwen3");
  auto model = std::make_shared<std::string>();
  verb->add_option("model", *model, "a model folder: look at its chat template instead");
  auto json = std::make_shared<bool>(false);
  auto skip_speed = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "print JSON");
  verb->add_flag("--no-speed", *skip_speed, "do not measure, only look");
  verb->callback([model, json, skip_speed] {
    model->empty() ? examine(*json, *skip_speed) : examine_model(*model, *json);
  });
}

}  // namespace ingot
