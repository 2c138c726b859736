#include "ingot/cli/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>

#include "ingot/base/edit_distance.h"
#include "ingot/base/log.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/version.h"
#include "ingot/kernels/cpu/dispatch.h"

namespace ingot {
namespace {

void print_error(const Error& error, bool verbose) {
  std::string line = concat("ingot: ", error.what());
  for (char& letter : line) {
    letter = letter == '\n' ? ' ' : letter;
  }
  std::cerr << line << '\n';
  if (verbose) {
    std::cerr << "  " << name(error.kind()) << " error at " << error.where().file_name() << ':'
              << error.where().line() << '\n';
  }
}

// The verb is the first word that is no option; one that does not exist is refused by its name.
void check_verb(const CLI::App& program, int argc, const char* const* argv) {
  const auto options_end = std::find_if(argv + std::min(argc, 1), argv + argc,
                                        [](const char* word) { return *word != '-'; });
  if (options_end == argv + argc) {
    return;
  }
  std::vector<std::string> verbs;
  for (const CLI::App* verb : program.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(verb->get_name());
  }
  check(std::find(verbs.begin(), verbs.end(), *options_end) != verbs.end(), ErrorKind::config,
        *options_end, ": no such command; the nearest is ", nearest_word(*options_end, verbs),
        ", `ingot --help` lists all");
}

// Results that did not arrive are a failure, though the work behind them was done.
void check_output() {
  std::cout.flush();
  check(std::cout.good() && std::fflush(stdout) == 0, ErrorKind::io,
        "standard output: what was printed could not be written; is the disk full?");
}

}  // namespace

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::argument:
    case ErrorKind::shape:
    case ErrorKind::dtype:
    case ErrorKind::device:
    case ErrorKind::config: return 2;
    case ErrorKind::io:
    case ErrorKind::format: return 3;
    case ErrorKind::numeric: return 4;
    case ErrorKind::comm: return 5;
    case ErrorKind::internal: return 1;
  }
  return 1;
}

int run_program(int argc, const char* const* argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is then an error like a full disk
  CLI::App program("Ingot trains language models: one program, native, without Python.", "ingot");
  program.set_version_flag("--version", engine_version);
  program.require_subcommand(1);
  program.footer(
      "Example: ingot train recipes/kjv.toml\n`ingot VERB --help` shows a verb's options.");
  program.failure_message([](const CLI::App*, const CLI::Error& error) {
    return concat("ingot: ", error.what(), "; see `ingot --help`\n");
  });
  bool verbose = false;
  bool quiet = false;
  program.add_flag("--verbose", verbose, "show more, and where in the source an error was raised");
  program.add_flag("--quiet", quiet, "show warnings and errors only");
  program.fallthrough();
  program.parse_complete_callback([&] {
    kernels::simd_level();  // reads INGOT_SIMD before the first kernel chooses its instructions
    set_log_level(verbose ? LogLevel::debug : quiet ? LogLevel::warn : LogLevel::info);
  });
  for (const AddCommand add : commands()) {
    add(program);
  }
  try {
    check_verb(program, argc, argv);
    program.parse(argc, argv);
    check_output();
    return 0;
  } catch (const CLI::RuntimeError& status) {
    return status.get_exit_code();  // a verb that ended early with nothing wrong
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  } catch (const Error& error) {
    print_error(error, verbose);
    return exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    std::cerr << "ingot: the system has no more memory\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "ingot: unexpected: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace ingot
