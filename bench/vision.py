#!/usr/bin/env python3
"""Times image classifiers on this machine's GPU, beside PyTorch with CUDA graphs in the same run.

    bench/vision.py [--onemodel PATH] [--runs N] [--models NAME...] [--keep FOLDER] [--no-torch-times]
                    [--profile]

Makes a ResNet-50 and a MobileNetV3-large with seeded random weights, exports them to ONNX in float32 and
float16, and times both sides in turn, as bench/transformers.py does: PyTorch with cudnn.benchmark, in
whichever of its two layouts is faster, replaying a CUDA graph; onemodel in fast and in exact mode. The
error is onemodel's scaled error against the same model in float64 on PyTorch. Prints a Markdown table
for bench/RESULTS.md. Needs PyTorch with CUDA.
"""
import os
import sys
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

from beside_torch import NOT_MEASURED, parse_options, print_header, print_rows, time_graph, torch_times


def convolution(inputs, outputs, kernel, stride=1, groups=1, act=None, epsilon=1e-5):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs, epsilon)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(convolution(inputs, width, 1, act=nn.ReLU),
                                  convolution(width, width, 3, stride, act=nn.ReLU),
                                  convolution(width, outputs, 1))
        self.shortcut = convolution(inputs, outputs, 1, stride) if stride != 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def resnet50():
    layers, inputs = [convolution(3, 64, 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(inputs, width, stride if i == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def rounded_to_8(width):
    nearest = max(8, int(width + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * width else nearest + 8


class Excite(nn.Module):
    def __init__(self, width):
        super().__init__()
        squeezed = rounded_to_8(width / 4)
        self.down, self.up = nn.Conv2d(width, squeezed, 1), nn.Conv2d(squeezed, width, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class Inverted(nn.Module):
    def __init__(self, inputs, kernel, width, outputs, excites, act, stride):
        super().__init__()
        layers = [] if width == inputs else [convolution(inputs, width, 1, act=act, epsilon=1e-3)]
        layers.append(convolution(width, width, kernel, stride, width, act, 1e-3))
        layers += [Excite(width)] if excites else []
        self.body = nn.Sequential(*layers, convolution(width, outputs, 1, epsilon=1e-3))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


def mobilenet_v3_large():
    blocks = (  # kernel, width, outputs, squeeze-and-excite, HardSwish, stride
        (3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2), (3, 72, 24, False, False, 1),
        (5, 72, 40, True, False, 2), (5, 120, 40, True, False, 1), (5, 120, 40, True, False, 1),
        (3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1), (3, 184, 80, False, True, 1),
        (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1),
        (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1), (5, 960, 160, True, True, 1))
    layers, inputs = [convolution(3, 16, 3, 2, act=nn.Hardswish, epsilon=1e-3)], 16
    for kernel, width, outputs, excites, is_hard, stride in blocks:
        act = nn.Hardswish if is_hard else nn.ReLU
        layers.append(Inverted(inputs, kernel, width, outputs, excites, act, stride))
        inputs = outputs
    layers += [convolution(inputs, 960, 1, act=nn.Hardswish, epsilon=1e-3), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, 1000))


MODELS = {"resnet50": resnet50, "mobilenet_v3_large": mobilenet_v3_large}


def calibrated(make):
    """With statistics of its batch normalisations, so that values keep their size through the layers."""
    torch.manual_seed(0)
    model = make().train()
    with torch.no_grad():
        for _ in range(4):
            model(torch.randn(8, 3, 224, 224))
    return model.eval()


def export(model, x, path):
    with torch.no_grad():
        torch.onnx.export(model, (x,), path, input_names=["x"], output_names=["y"], opset_version=17,
                          dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}, dynamo=False)


class ChannelsLast(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x.contiguous(memory_format=torch.channels_last))


def time_layouts(model, inputs, runs):
    planar = time_graph(model.to(memory_format=torch.contiguous_format), inputs, runs)
    last = time_graph(ChannelsLast(model.to(memory_format=torch.channels_last)), inputs, runs)
    return min(planar, last)


def main():
    options = parse_options(MODELS)
    torch.backends.cudnn.benchmark = True
    print_header()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        for name in options.models:
            model = calibrated(MODELS[name])
            half, wide, wide_half = (MODELS[name]().eval() for _ in range(3))
            half.load_state_dict(model.state_dict())
            half = half.half()
            wide.load_state_dict(model.state_dict())
            wide_half.load_state_dict(half.state_dict())
            wide, wide_half = wide.double().cuda(), wide_half.double().cuda()
            paths = {kind: os.path.join(folder, f"{name}_{kind}.onnx") for kind in ("float32", "float16")}
            export(model, torch.randn(2, 3, 224, 224), paths["float32"])
            half.cuda()  # the exporter runs the model, which the CPU may not do in float16
            export(half, torch.randn(2, 3, 224, 224).half().cuda(), paths["float16"])
            half.cpu()
            for batch in (1, 8):
                torch.manual_seed(1)
                inputs = {"x": torch.randn(batch, 3, 224, 224)}
                halves = {"x": inputs["x"].half()}
                with torch.no_grad():
                    references = {"float32": wide(inputs["x"].double().cuda()).cpu().numpy(),
                                  "float16": wide_half(halves["x"].double().cuda()).cpu().numpy()}
                times = NOT_MEASURED
                if not options.no_torch_times:
                    times = torch_times(model, half, inputs, halves, options.runs, time_layouts)
                print_rows(options, name, batch, paths, inputs, halves, references, times, folder)
    print(f"\nPyTorch {torch.__version__}, {torch.cuda.get_device_name()}.")


if __name__ == "__main__":
    sys.exit(main())
