#pragma once

#include <filesystem>

#include "ingot/text/tokenizer.h"

namespace ingot {

// Reads a tokenizer of whatever format `path` is:
//   a folder         tokenizer.json, tokenizer.model, vocab.json with merges.txt, or one *.tiktoken
//                    in it, the first that is there; tokenizer_config.json tells bos, eos and pad
//   *.json           tokenizer.json, or a vocab.json with merges.txt beside it
//   *.model          SentencePiece, or ranks in the form of tiktoken (Llama 3)
//   *.tiktoken       ranks; see encoding_beside()
//   merges.txt       with vocab.json beside it
// Throws Error(io) where it is not there, Error(format) or Error(config) as the readers do.
Tokenizer load_tokenizer(const std::filesystem::path& path);

// The files of a folder that load_tokenizer() reads there, to be copied beside a model; empty where
// it holds no tokenizer. For a file, it and what is read beside it.
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& path);

}  // namespace ingot
