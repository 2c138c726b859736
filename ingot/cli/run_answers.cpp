#include "ingot/cli/run_answers.h"

#include "ingot/base/files.h"
#include "ingot/base/log.h"
#include "ingot/base/progress.h"
#include "ingot/cli/adapter_model.h"
#include "ingot/cli/answer_kinds.h"
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

void save_run_adapter(Session& session, const RunData& data, const std::filesystem::path& folder) {
  SaveOptions unused;
  write_reading(data, folder, unused);
  const std::string& from = session.recipe().model.from;
  peft::save_adapter(*session.adapters(), published_maps(session.model()), folder,
                     {from, base_hash(from)});
}

void save_score_head(Session& session, const std::filesystem::path& folder) {
  make_directories(folder);
  TensorDict tensors;
  tensors.add("score.weight", session.score_head()->weight);
  write_safetensors(folder / "score.safetensors", tensors, {{"format", "pt"}});
}

}  // namespace ingot
