// ingot chat: a conversation with a model in the terminal.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "ingot/base/log.h"
#include "ingot/cli/chat_session.h"
#include "ingot/cli/commands.h"

namespace ingot {
namespace {

struct ChatArguments {
  ModelArguments model;
  ChatSession::Options options;
};

void converse(ChatArguments& arguments) {
  const LoadedModel loaded = load_model(arguments.model);
  loaded.text();
  if (!loaded.chat) {
    log_warn(
        loaded.name,
        ": no chat template, so it was not trained to converse (no SFT): it continues a script of "
        "User: and Assistant: as a base model does");
  }
  arguments.options.kv = arguments.model.kv;
  arguments.options.prompted = ::isatty(STDIN_FILENO) == 1;
  if (arguments.options.prompted) {
    std::cout << "/help lists the commands\n";
  }
  ChatSession(loaded, arguments.options, std::cin, std::cout).run();
}

}  // namespace

void add_chat_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("chat", "Converse with a model in the terminal.");
  verb->footer(
      "Example: ingot chat runs/chat/model --system \"Answer briefly.\" --temperature 0.7");
  auto arguments = std::make_shared<ChatArguments>();
  arguments->options.sampling.config.max_tokens = 1024;
  add_model_options(*verb, arguments->model);
  verb->add_option("--system", arguments->options.system,
                   "what the model is told before everything");
  add_sampling_options(*verb, arguments->options.sampling);
  verb->callback([arguments] { converse(*arguments); });
}

}  // namespace ingot
