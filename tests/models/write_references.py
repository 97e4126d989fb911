#!/usr/bin/env python3
"""Writes inputs and ONNX Runtime's results for the text-recognition models.

    write_references.py MODELS_FOLDER OUT_FOLDER

For each case NAME: NAME.x and NAME.y, files of a rank, the extents (int64) and float32 elements.
Exit code 77: there is no onnxruntime here.
"""
import pathlib
import sys

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(error)
    sys.exit(77)

DETECTOR = "ch_PP-OCRv4_det_infer.onnx"
RECOGNISER = "ch_PP-OCRv4_rec_infer.onnx"
CLASSIFIER = "ch_ppocr_mobile_v2.0_cls_infer.onnx"
CASES = [                               # the same names as in test_ocr_models.c
    ("detector_64x96", DETECTOR, (1, 3, 64, 96)),
    ("detector_160x224", DETECTOR, (1, 3, 160, 224)),
    ("recogniser_48x320", RECOGNISER, (1, 3, 48, 320)),
    ("recogniser_48x100", RECOGNISER, (1, 3, 48, 100)),
    ("recogniser_batch_3", RECOGNISER, (3, 3, 48, 64)),
    ("classifier_48x192", CLASSIFIER, (1, 3, 48, 192)),
    ("classifier_batch_2", CLASSIFIER, (2, 3, 48, 192)),
]


def picture(shape, generator):
    """Dark strokes on a light ground with some noise, scaled to [-1, 1] as the models want it."""
    n, c, h, w = shape
    image = numpy.full(shape, 0.8, numpy.float32)
    for number in range(n):
        for _ in range(max(4, w // 10)):
            x, y = generator.integers(0, w - 4), generator.integers(4, h - 16)
            if generator.random() < 0.5:
                image[number, :, y:y + 12, x:x + 3] = -0.8
            else:
                image[number, :, y:y + 3, x:x + 12] = -0.8
    return numpy.clip(image + generator.normal(0, 0.05, shape), -1, 1).astype(numpy.float32)


def write(path, array):
    with open(path, "wb") as file:
        numpy.array([array.ndim, *array.shape], numpy.int64).tofile(file)
        numpy.ascontiguousarray(array, numpy.float32).tofile(file)


def main():
    models, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    sessions = {}
    for number, (name, model, shape) in enumerate(CASES):
        if model not in sessions:
            sessions[model] = onnxruntime.InferenceSession(str(models / model), options,
                                                           providers=["CPUExecutionProvider"])
        session = sessions[model]
        x = picture(shape, numpy.random.default_rng(number))
        y = session.run(None, {session.get_inputs()[0].name: x})[0]
        write(out / f"{name}.x", x)
        write(out / f"{name}.y", y)


if __name__ == "__main__":
    main()
