// ingot serve: a model behind OpenAI's HTTP interface.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <thread>

#include "ingot/base/log.h"
#include "ingot/base/signals.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/number_checks.h"
#include "ingot/cli/serve_server.h"

namespace ingot {
namespace {

struct ServeArguments {
  ModelArguments model;
  ServeConfig config;
  int64_t cache_mib = 2048;
};

void serve(ServeArguments& arguments) {
  ServeConfig& config = arguments.config;
  if (config.key.empty()) {
    const char* key = std::getenv("INGOT_SERVE_KEY");
    config.key = key == nullptr ? "" : key;
  }
  const LoadedModel loaded = load_model(arguments.model);
  loaded.text();  // without one there is nothing to serve
  config.scheduler.kv = arguments.model.kv;
  config.scheduler.cache_tokens =
      cache_tokens_within(loaded.decoder(), config.scheduler, arguments.cache_mib << 20);
  const StopSignals signals;
  Server server(loaded, config);
  server.start();
  fmt::print("serving {} at http://{}:{}\n", config.name.empty() ? loaded.name : config.name,
             config.host, server.port());
  std::fflush(stdout);
  if (config.key.empty() && config.host != "127.0.0.1" && config.host != "localhost") {
    log_warn("serve: anyone who reaches ", config.host, " may use it; give --key");
  }
  if (!loaded.chat) {
    log_warn(loaded.name, ": it has no chat template: /v1/chat/completions answers 400");
  }
  while (!stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  log_info("stopping: answers that are being written end first");
  if (!server.stop()) {
    log_warn("serve: answers were cut off after ", config.drain_seconds, " s");
  }
}

}  // namespace

void add_serve_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("serve", "Serve a model over HTTP, as OpenAI's API.");
  verb->footer(
      "Example: ingot serve runs/chat/model --port 8080\n"
      "Then open http://127.0.0.1:8080, or point any OpenAI client at http://127.0.0.1:8080/v1.");
  auto arguments = std::make_shared<ServeArguments>();
  ServeConfig& config = arguments->config;
  add_model_options(*verb, arguments->model);
  verb->add_option("--host", config.host, "address to listen at (default: this machine only)");
  verb->add_option("--port", config.port, "port; 0 takes one that is free")
      ->check(CLI::Range(0, 65535));
  verb->add_option("--key", config.key,
                   "clients must send it as a bearer token (or set INGOT_SERVE_KEY)");
  verb->add_option("--name", config.name, "what clients call the model (default: its folder)");
  verb->add_option("--rows", config.scheduler.rows, "texts written side by side")
      ->check(counting_number());
  verb->add_option("--cache-mib", arguments->cache_mib, "MiB of keys and values in memory at most")
      ->check(counting_number());
  verb->add_option("--queue", config.queue, "requests that may wait; more are answered 429")
      ->check(whole_number());
  verb->add_option("--max-tokens", config.max_tokens, "of one answer")->check(counting_number());
  verb->add_option("--max-body", config.body_bytes, "bytes of a request's body")
      ->check(counting_number());
  verb->add_option("--timeout", config.request_seconds, "seconds for an answer")
      ->check(counting_number());
  verb->add_option("--read-timeout", config.read_seconds,
                   "seconds for a request to arrive, and for a client to take what is sent")
      ->check(counting_number());
  verb->add_option("--drain", config.drain_seconds,
                   "seconds that answers have to end after SIGTERM or Ctrl-C")
      ->check(whole_number());
  verb->callback([arguments] { serve(*arguments); });
}

}  // namespace ingot
