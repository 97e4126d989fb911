#!/usr/bin/env python3
"""Times transformer encoders on this machine's GPU, beside PyTorch with CUDA graphs in the same run.

    bench/transformers.py [--onemodel PATH] [--runs N] [--models NAME...] [--keep FOLDER] [--no-torch-times]
                          [--profile]

Makes a MiniLM-L6, a BERT-base and a 12-layer speech encoder with seeded random weights, exports
them to ONNX in float32 and float16, and times both sides in turn: PyTorch replaying a CUDA graph
(inputs copied to the device and results back inside the measured time), onemodel in fast and in
exact mode. The error is onemodel's scaled error against the same model in float64 on PyTorch: of
float16 the model whose weights and inputs are rounded to float16 already.
Prints a Markdown table for bench/RESULTS.md. Needs PyTorch with CUDA.
"""
import math
import os
import sys
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

from beside_torch import NOT_MEASURED, parse_options, print_header, print_rows, torch_times


class Attention(nn.Module):
    """fused: PyTorch's own attention, for its times; else the products and the softmax, as exporters write them."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.fused = heads, False
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask=None):
        def split(t):
            return t.view(t.shape[0], -1, self.heads, t.shape[-1] // self.heads).transpose(1, 2)

        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            y = (scores if mask is None else scores + mask).softmax(-1) @ v
        return self.o(y.transpose(1, 2).reshape(x.shape))


class Bert(nn.Module):
    def __init__(self, width, heads, inner, layers, vocabulary=30522, positions=512):
        super().__init__()
        self.words, self.positions, self.types = (nn.Embedding(n, width) for n in (vocabulary, positions, 2))
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.ModuleList(
            nn.ModuleList([Attention(width, heads), nn.LayerNorm(width, 1e-12), nn.Linear(width, inner),
                           nn.Linear(inner, width), nn.LayerNorm(width, 1e-12)]) for _ in range(layers))
        for table in (self.words, self.positions, self.types):
            nn.init.normal_(table.weight, 0, 0.02)

    def forward(self, ids, mask, kinds):
        at = torch.arange(ids.shape[1], device=ids.device)[None]
        x = self.norm(self.words(ids) + self.positions(at) + self.types(kinds))
        hidden = (1 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for attention, norm1, up, down, norm2 in self.layers:
            x = norm1(x + attention(x, hidden))
            x = norm2(x + down(F.gelu(up(x))))
        return x


class SpeechEncoder(nn.Module):
    def __init__(self, width=768, heads=12, layers=12, bands=80):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(bands, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, 1)
        self.positions = nn.Parameter(torch.randn(1500, width) * 0.02)
        self.layers = nn.ModuleList(
            nn.ModuleList([nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width),
                           nn.Linear(width, 4 * width), nn.Linear(4 * width, width)]) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, mel):
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).transpose(1, 2) + self.positions
        for norm1, attention, norm2, up, down in self.layers:
            x = x + attention(norm1(x))
            x = x + down(F.gelu(up(norm2(x))))
        return self.norm(x)


def bert_inputs(batch):
    ids = torch.randint(0, 30522, (batch, 128))
    mask = torch.ones_like(ids)
    mask[:, 100:] = 0   # some padding, as real batches have
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}


MODELS = {   # name: (module, inputs of a batch, batches)
    "minilm": (lambda: Bert(384, 12, 1536, 6), bert_inputs, (1, 8)),
    "bert": (lambda: Bert(768, 12, 3072, 12), bert_inputs, (1, 8)),
    "speech": (SpeechEncoder, lambda batch: {"mel": torch.randn(batch, 80, 3000) * 0.5}, (1, 4)),
}


def export(model, inputs, path):
    names = list(inputs)
    axes = {name: {0: "batch"} for name in names + ["y"]}
    if "input_ids" in inputs:
        axes = {name: {0: "batch", 1: "sequence"} for name in axes}
    torch.onnx.export(model, tuple(inputs.values()), path, input_names=names, output_names=["y"], dynamic_axes=axes,
                      opset_version=17, do_constant_folding=True, dynamo=False)


def main():
    options = parse_options(MODELS)
    print_header()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        for name in options.models:
            make, make_inputs, batches = MODELS[name]
            torch.manual_seed(0)
            model = make().eval()
            half = make().eval()
            half.load_state_dict(model.state_dict())
            half = half.half()
            paths = {}
            for kind, module in (("float32", model), ("float16", half)):
                inputs = make_inputs(2)
                if kind == "float16":
                    inputs = {k: v.half() if v.is_floating_point() else v for k, v in inputs.items()}
                paths[kind] = os.path.join(folder, f"{name}_{kind}.onnx")
                with torch.no_grad():
                    export(module, inputs, paths[kind])
            for batch in batches:
                torch.manual_seed(1)
                inputs = make_inputs(batch)
                halves = {k: v.half() if v.is_floating_point() else v for k, v in inputs.items()}
                references = {}
                for kind, of, given in (("float32", model, inputs), ("float16", half, halves)):
                    wide = make().eval()
                    wide.load_state_dict(of.state_dict())
                    wide = wide.double().cuda()
                    with torch.no_grad():
                        references[kind] = wide(*[v.double().cuda() if v.is_floating_point() else v.cuda()
                                                  for v in given.values()]).cpu().numpy()
                    del wide
                times = NOT_MEASURED
                if not options.no_torch_times:
                    for module in (model, half):
                        for part in module.modules():
                            if isinstance(part, Attention):
                                part.fused = True
                    times = torch_times(model, half, inputs, halves, options.runs)
                print_rows(options, name, batch, paths, inputs, halves, references, times, folder)
    print(f"\nPyTorch {torch.__version__}, {torch.cuda.get_device_name()}.")


if __name__ == "__main__":
    sys.exit(main())
