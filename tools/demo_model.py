"""What training and evaluation of the demo model share: its shape, its files, its prompts."""
import json
import pathlib

import torch
from jinja2 import Environment
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers.models.gemma4.configuration_gemma4 import Gemma4TextConfig
from transformers.models.gemma4.modeling_gemma4 import Gemma4ForCausalLM

LAYERS = 12
# Not one anywhere, and different everywhere: a forgotten scalar must show.  All are exact in BF16.
LAYER_SCALARS = [0.9375, 0.75, 0.875, 0.8125, 0.96875, 0.6875, 0.90625, 0.78125, 0.84375, 0.953125, 0.71875, 0.8125]
SHAPE = dict(
    hidden_size=192, intermediate_size=448, num_hidden_layers=LAYERS, num_attention_heads=4, num_key_value_heads=2,
    num_global_key_value_heads=1, head_dim=64, global_head_dim=128, sliding_window=128, max_position_embeddings=4096,
    attention_k_eq_v=True, final_logit_softcapping=30.0, hidden_size_per_layer_input=0, vocab_size_per_layer_input=0,
    num_kv_shared_layers=0, tie_word_embeddings=True, use_double_wide_mlp=False, enable_moe_block=False)
EMPTY_THOUGHT = "<|channel>thought\n<channel|>"


class Text:
    """Tokenizer and chat template of a model folder."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        env = Environment(trim_blocks=True, lstrip_blocks=True)
        env.globals["raise_exception"] = self.fail
        self.template = env.from_string((folder / "chat_template.jinja").read_text(encoding="utf-8"))
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    @staticmethod
    def fail(message):
        raise ValueError(message)

    def id(self, token):
        return self.tokenizer.token_to_id(token)

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def render(self, messages, tools, thinking, generate):
        return self.template.render(messages=messages, tools=tools, enable_thinking=thinking, bos_token="<bos>",
                                    add_generation_prompt=generate)

    def example(self, conversation):
        """The prompt and what the model is to write after it, the stop token included."""
        messages, rest = conversation["messages"], (conversation["tools"], conversation["enable_thinking"])
        prompt = self.render(messages[:-1], *rest, True)
        whole = self.render(messages, *rest, False)
        given = prompt.removesuffix(EMPTY_THOUGHT)  # finished turns are shown without the empty thought
        assert whole.startswith(given), (prompt, whole)
        return prompt, whole[len(given):].removesuffix("\n")

    def stops(self):
        return [self.id(t) for t in ("<eos>", "<turn|>", "<|tool_response>")]


def text_config(text):
    """The configuration in the published dialect (text_config of config.json)."""
    special = dict(pad_token_id=text.id("<pad>"), bos_token_id=text.id("<bos>"), eos_token_id=text.id("<eos>"))
    kinds = ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(LAYERS)]
    return dict(
        SHAPE, **special, vocab_size=text.tokenizer.get_vocab_size(), model_type="gemma4_text", layer_types=kinds, rms_norm_eps=1e-6,
        hidden_activation="gelu_pytorch_tanh", attention_bias=False, attention_dropout=0.0, dtype="bfloat16", use_cache=True,
        initializer_range=0.02, use_bidirectional_attention="vision", num_experts=None, top_k_experts=None,
        moe_intermediate_size=None,
        rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                         "full_attention": {"rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25}})


def make_model(config, attention):
    """A float32 model; like the published ones, its embedding scale is a BF16 number."""
    c = Gemma4TextConfig(**{k: v for k, v in config.items() if k not in ("dtype", "model_type")})
    c._attn_implementation = attention
    model = Gemma4ForCausalLM(c).float()
    scale = model.model.embed_tokens.embed_scale
    scale.data = scale.data.to(torch.bfloat16).float()
    return model


def init(model, seed):
    """Starting values.  Scores have no 1/sqrt(head size), so the q and k norms start small."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith(("q_norm.weight", "k_norm.weight")):
                p.fill_(1.3 * p.numel() ** -0.25)
            elif "post_" in name:
                p.fill_(0.4)
            elif p.dim() == 2 and "embed" not in name:
                p.normal_(std=p.shape[1] ** -0.5)
            elif p.dim() == 2:
                p.normal_(std=0.03)
        for layer, s in zip(model.model.layers, LAYER_SCALARS):
            layer.layer_scalar.fill_(s)


def save(model, config, folder, text):
    """Weights and configurations in the published layout."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {k.replace("model.", "model.language_model.", 1): v.detach().to("cpu", torch.bfloat16).contiguous()
               for k, v in model.state_dict().items() if not k.startswith("lm_head")}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    eos, turn, response = text.stops()
    top = dict(architectures=["Gemma4ForConditionalGeneration"], model_type="gemma4", dtype="bfloat16", tie_word_embeddings=True,
               eos_token_id=[eos, turn], text_config=config, vision_config=None, audio_config=None, transformers_version="5.17.0",
               image_token_id=text.id("<|image|>"), audio_token_id=text.id("<|audio|>"), video_token_id=text.id("<|video|>"),
               boi_token_id=text.id("<|image>"), eoi_token_id=text.id("<image|>"), boa_token_id=text.id("<|audio>"),
               eoa_token_id=text.id("<audio|>"))
    generation = dict(bos_token_id=config["bos_token_id"], pad_token_id=config["pad_token_id"], eos_token_id=[eos, turn, response],
                      do_sample=True, temperature=1.0, top_k=64, top_p=0.95, transformers_version="5.17.0")
    for name, content in (("config.json", top), ("generation_config.json", generation)):
        (folder / name).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def load(folder, device="cpu"):
    """The reference: BF16 weights in float32, eager attention, no TF32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    folder = pathlib.Path(folder)
    model = make_model(json.loads((folder / "config.json").read_text())["text_config"], "eager")
    tensors = {k.replace("model.language_model.", "model.", 1): v.float()
               for k, v in load_file(folder / "model.safetensors").items()}
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    assert set(missing) <= {"lm_head.weight"} and not unexpected, (missing, unexpected)
    model.tie_weights()
    return model.eval().to(device)
