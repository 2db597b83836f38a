"""A server of PyTorch and http.server for the network and requests of examples/classify, whose
figures stand beside it. It needs Pillow. Its weights are random: answers take as long.

python3 scripts/classify.py --port 8001
go test ./examples/classify -run '^$' -bench Classify -benchtime 1000x -clients 8 -url http://localhost:8001/classify
"""

import argparse
import io
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
from PIL import Image
from torch import nn

SIDE, LABELS = 32, ["disc", "square", "triangle", "cross"]

model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(16 * SIDE * SIDE // 16, 32), nn.ReLU(), nn.Linear(32, len(LABELS)),
).eval()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        image = Image.open(io.BytesIO(body)).convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        x = torch.from_numpy(np.asarray(image, np.float32) / 255).reshape(1, 1, SIDE, SIDE)
        with torch.inference_mode():
            p = torch.softmax(model(x), 1)[0].tolist()
        best = max(range(len(p)), key=p.__getitem__)
        text = json.dumps({"label": LABELS[best], "probabilities": dict(zip(LABELS, p))}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, default=8001)
    p.add_argument("--threads", type=int, default=1)
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    ThreadingHTTPServer(("localhost", o.port), Handler).serve_forever()
