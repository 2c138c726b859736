#include "ingot/cli/run_answers.h"

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/base/progress.h"
#include "ingot/cli/adapter_model.h"
#include "ingot/cli/answer_kinds.h"
#include "ingot/cli/frozen_base.h"
#include "ingot/cli/run_rows.h"
#include "ingot/io/safetensors.h"
#include "ingot/models/pretrained.h"
#include "ingot/peft/published.h"

namespace ingot {
namespace {

bool needs_reference(const Recipe& recipe) {
  return (recipe.kind == "dpo" || recipe.kind == "kto") && !recipe.peft.on();
}

TeacherContext context_of(const Recipe& recipe, const TextCodec& codec) {
  TeacherContext out;
  if (recipe.distill.context.empty() || codec.tokenizer() == nullptr) {
    return out;
  }
  const TokenIds ids = codec.tokenizer()->encode(recipe.distill.context);
  out.tokens.assign(ids.begin(), ids.end());
  out.begin = codec.tokenizer()->bos().value_or(-1);
  return out;
}

}  // namespace

void prepare_answers(Session& session, const RunData& data, const RunFolder& folder) {
  const Recipe& recipe = session.recipe();
  session.reads.context = context_of(recipe, data.codec);
  session.reads.stops = data.codec.stops();
  if (!needs_reference(recipe)) {
    return;
  }
  const std::filesystem::path file = folder.path() / "reference.safetensors";
  if (session.state.step > 0 || file_exists(file)) {
    session.reference() = ReferenceCache::load(file, session.state.step > 0 ? "" : data.hash);
    log_info("reference: log-probabilities of ", session.reference().size(), " answers from ",
             file.string());
    return;
  }
  Progress progress("reference", data.every_answer_batches, "batches");
  ReferenceCache found;
  found.add(reference_of(session), data.every_answer_batches, data.every_answer,
            [&](int64_t done) { progress.set(done); });
  progress.finish();
  found.save(file, data.hash);
  session.reference() = std::move(found);
  log_info("reference: log-probabilities of ", session.reference().size(), " answers computed");
}

std::string adapted_base(const Session& session, const RunData& data, const RunFolder& folder) {
  const std::string& from = session.recipe().model.from;
  return data.added.count == 0 ? from : (folder.path() / "base").string();
}

std::filesystem::path save_run_adapter(Session& session, const RunData& data,
                                       const RunFolder& folder) {
  const std::string base = adapted_base(session, data, folder);
  if (data.added.count > 0) {
    Recipe whole = session.recipe();
    whole.peft.base = "as_is";
    const auto model = frozen_decoder(whole, session.model().dtype(), cpu_device, data.added);
    SaveOptions options;
    auto config = nlohmann::json::parse(open_source(whole.model.from).published);
    config.update(nlohmann::json::parse(codec_config(data.codec)), true);  // its tokenizer's hash
    options.base_config = config.dump();
    write_reading(data, base, options);
    save_pretrained(*model, base, options);
  }
  const std::filesystem::path made = folder.path() / "adapter";
  SaveOptions unused;
  write_reading(data, made, unused);
  peft::save_adapter(*session.adapters(), published_maps(session.model()), made,
                     {base, base_hash(base)});
  return made;
}

void save_score_head(Session& session, const std::filesystem::path& folder) {
  make_directories(folder);
  TensorDict tensors;
  tensors.add("score.weight", session.score_head()->weight);
  write_safetensors(folder / "score.safetensors", tensors, {{"format", "pt"}});
}

}  // namespace ingot
