#include "ingot/cli/model_source.h"

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/sample.h"
#include "ingot/models/gguf_vocabulary_keys.h"
#include "ingot/models/pretrained.h"
#include "ingot/models/upcycle.h"
#include "ingot/tensor/copy.h"
#include "ingot/text/load_tokenizer.h"

namespace ingot {
namespace {

// Each message between <|im_start|>role and <|im_end|>: as OpenAI published it in 2023, and as most
// models with "chatml" in their name are trained.
constexpr std::string_view chatml =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}";

ModelSource open_folder_source(const std::string& path) {
  ModelSource out;
  auto folder = std::make_shared<PublishedFolder>(read_published(path));
  out.config = folder->config;
  out.published = folder->json;
  out.reads_bytes = reads_bytes(folder->json);
  if (!out.reads_bytes && !tokenizer_files(path).empty()) {
    out.tokenizer = std::make_shared<const Tokenizer>(load_tokenizer(path));
  }
  if (auto chat = ChatTemplate::find(path)) {
    out.chat = std::make_shared<const ChatTemplate>(*std::move(chat));
  }
  out.weights = [folder](const DecoderConfig& shape) { return folder->weights(shape); };
  return out;
}

jinja::Mapping token_texts(const Tokenizer& tokenizer) {
  jinja::Mapping out;
  const auto put = [&](const char* key, std::optional<TokenId> id) {
    if (id) {
      out.set(key, tokenizer.token(*id));
    }
  };
  put("bos_token", tokenizer.bos());
  put("eos_token", tokenizer.eos());
  return out;
}

ModelSource open_gguf_source(const std::string& path) {
  ModelSource out;
  auto stored = std::make_shared<StoredModel>(open_model(path));
  out.config = stored->config;
  out.published = stored->published;
  out.reads_bytes = reads_bytes(stored->published);
  const auto vocabulary = gguf_vocabulary_from(stored->tokenizer, path);
  if (vocabulary && !out.reads_bytes) {
    out.tokenizer = std::make_shared<const Tokenizer>(from_gguf(*vocabulary));
    if (auto chat = stored_chat_template(*stored, path)) {
      out.chat = std::make_shared<const ChatTemplate>(*std::move(chat));
    }
  }
  out.weights = [stored](const DecoderConfig&) {
    return load_stored(*stored, DType::f32).model->parameters();
  };
  return out;
}

}  // namespace

DecoderConfig source_config(const std::string& path) {
  return is_folder(path) ? read_published(path).config : open_model(path).config;
}

ModelSource open_source(const std::string& path) {
  return is_folder(path) ? open_folder_source(path) : open_gguf_source(path);
}

std::optional<ChatTemplate> stored_chat_template(const StoredModel& file, const std::string& path) {
  const auto vocabulary = gguf_vocabulary_from(file.tokenizer, path);
  if (!vocabulary || vocabulary->chat_template.empty()) {
    return std::nullopt;
  }
  const auto text = [&](std::optional<int64_t> id) {
    const bool known = id && *id >= 0 && *id < static_cast<int64_t>(vocabulary->tokens.size());
    return known ? vocabulary->tokens[static_cast<size_t>(*id)] : std::string();
  };
  jinja::Mapping tokens;
  for (const auto& [key, id] :
       {std::pair("bos_token", vocabulary->bos), std::pair("eos_token", vocabulary->eos)}) {
    if (const std::string spelled = text(id); !spelled.empty()) {
      tokens.set(key, spelled);
    }
  }
  return ChatTemplate(vocabulary->chat_template, std::move(tokens),
                      path + ": tokenizer.chat_template", {text(vocabulary->end_of_turn)});
}

TensorDict source_weights(const std::string& path, const Decoder& model, const AddedRows& added,
                          uint64_t seed) {
  const ModelSource source = open_source(path);
  DecoderConfig shape = model.config();
  const bool grows = shape.vocab > source.config.vocab;
  shape.vocab = grows ? source.config.vocab : shape.vocab;
  shape.mtp = source.config.mtp.depth > 0 ? shape.mtp : MultiTokenConfig();
  const bool sparse = source.config.moe.experts == 0 && shape.moe.experts > 0;
  check(!(sparse && grows), ErrorKind::config,
        "model.moe: a model is upcycled or given tokens, not both at once; do one, then the other");
  const Device device = model.embedding.weight.device();
  const TensorDict values =
      sparse ? upcycled_weights(model, source.config, source.weights(source.config), seed)
             : source.weights(shape);
  return values.mapped([&](const std::string& name, const Tensor& x) {
    const Tensor full_precision = converted(moved(x, device), DType::f32);
    const bool table = name == "embedding.weight" || name == "head.weight";
    if (!table || (!grows && added.count == 0)) {
      return full_precision;
    }
    const AddedRows rows = added.count > 0 ? added : AddedRows{source.config.vocab, 0};
    return with_added_rows(full_precision, model.config().vocab, rows);
  });
}

std::shared_ptr<const ChatTemplate> chat_template_named(const std::string& name,
                                                        const Tokenizer& tokenizer) {
  jinja::Mapping tokens = token_texts(tokenizer);
  if (name == "chatml") {
    tokens.set("eos_token", "<|im_end|>");
    return std::make_shared<const ChatTemplate>(chatml, std::move(tokens), "template chatml");
  }
  if (is_folder(name)) {
    return std::make_shared<const ChatTemplate>(ChatTemplate::load(name));
  }
  return std::make_shared<const ChatTemplate>(read_file(name), std::move(tokens), name);
}

std::vector<std::string> template_tokens(const std::string& name) {
  return name == "chatml" ? std::vector<std::string>{"<|im_start|>", "<|im_end|>"}
                          : std::vector<std::string>();
}

}  // namespace ingot
