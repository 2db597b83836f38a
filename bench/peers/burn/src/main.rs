//! Burn as a contestant of bench/peers: `millrace-peer-burn BACKEND [--versions]`
//! answers the questions of package talk on that backend.

use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Instant;

use burn::tensor::{Device, Tensor, TensorData, activation, module};
use serde_json::{Value, json};

const BURN: &str = "0.22.1"; // as Cargo.toml says
const EPS: f64 = 1e-5;

type Fault = Box<dyn Error>;

/// An input, of the rank that its workload knows.
struct Input {
    shape: Vec<usize>,
    data: Vec<f32>,
}

impl Input {
    fn read(of: &Value) -> Result<Input, Fault> {
        let file = of["file"].as_str().ok_or("an input without a file")?;
        let dims = of["shape"].as_array().ok_or("an input without a shape")?;
        let shape = dims
            .iter()
            .filter_map(|d| d.as_u64())
            .map(|d| d as usize)
            .collect();
        let bytes = std::fs::read(file)?;
        let data = bytes
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        Ok(Input { shape, data })
    }

    fn tensor<const D: usize>(&self, device: &Device) -> Tensor<D> {
        Tensor::from_data(
            TensorData::new(self.data.clone(), self.shape.clone()),
            device,
        )
    }
}

/// What a run leaves: a tensor on the device, or elements that were read.
enum Output {
    Vector(Tensor<1>),
    Matrix(Tensor<2>),
    Cube(Tensor<3>),
    Read(Vec<f32>),
}

impl Output {
    fn elements(&self) -> Result<Vec<f32>, Fault> {
        let data = match self {
            Output::Vector(t) => t.clone().into_data(),
            Output::Matrix(t) => t.clone().into_data(),
            Output::Cube(t) => t.clone().into_data(),
            Output::Read(v) => return Ok(v.clone()),
        };
        data.try_to_vec::<f32>().map_err(|e| format!("{e:?}").into())
    }
}

type Run = Box<dyn Fn(usize) -> Result<Output, Fault>>;

fn gelu<const D: usize>(x: Tensor<D>, erf: fn(Tensor<D>) -> Tensor<D>) -> Tensor<D> {
    x.clone() * (erf(x * std::f64::consts::FRAC_1_SQRT_2) + 1.0) * 0.5
}

/// Formula 7.1.26 of Abramowitz and Stegun for x and for -x, chosen by sign.
fn custom_erf<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let positive = erf_positive(x.clone());
    let negative = erf_positive(x.clone().neg()).neg();
    negative.mask_where(x.greater_elem(0.0), positive)
}

fn erf_positive<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let t = (x.clone().abs() * 0.3275911 + 1.0).recip();
    let mut y = t.clone() * 1.061405429;
    for a in [-1.453152027, 1.421413741, -0.284496736] {
        y = (y + a) * t.clone();
    }
    let e = (x.clone().neg() * x).exp();
    ((y + 0.254829592) * t * e).neg() + 1.0
}

fn chain(mut x: Tensor<1>, step: usize) -> Tensor<1> {
    let k = (step % 1000 + 1) as f64 * 1e-6;
    for i in 0..20usize {
        x = match i % 2 {
            0 => x * (1.0 + k * ((i % 7) as f64 - 3.0)),
            _ => x + k * (i + 1) as f64,
        };
    }
    x
}

/// A workload as a function of the step; None where it is not known.
fn program(name: &str, inputs: &[Input], d: &Device) -> Option<Run> {
    if name.starts_with("matmul") {
        let (a, b) = (inputs[0].tensor::<2>(d), inputs[1].tensor::<2>(d));
        return Some(Box::new(move |_| {
            Ok(Output::Matrix(a.clone().matmul(b.clone())))
        }));
    }
    if name.starts_with("chain") {
        let (x, varies) = (inputs[0].tensor::<1>(d), name == "chain-vary");
        return Some(Box::new(move |step| {
            let y = chain(x.clone(), if varies { step } else { 0 });
            Output::Vector(y).elements().map(Output::Read)
        }));
    }
    if name == "layernorm" {
        let (x, w, b) = (
            inputs[0].tensor::<3>(d),
            inputs[1].tensor::<1>(d),
            inputs[2].tensor::<1>(d),
        );
        return Some(Box::new(move |_| {
            Ok(Output::Cube(module::layer_norm(
                x.clone(),
                w.clone(),
                Some(b.clone()),
                EPS,
            )))
        }));
    }
    if name == "sum" {
        let x = inputs[0].tensor::<3>(d);
        return Some(Box::new(move |_| Ok(Output::Vector(x.clone().sum()))));
    }
    let f: fn(Tensor<3>) -> Tensor<3> = match name {
        "gelu" => activation::gelu,
        "gelu-tanh" => activation::gelu_approximate,
        "gelu-erf" => |x| gelu(x, Tensor::erf),
        "gelu-custom" => |x| gelu(x, custom_erf),
        "softmax" => |x| activation::softmax(x, 2),
        "softmax-middle" => |x| activation::softmax(x, 1),
        "sum-0" => |x| x.sum_dim(0),
        _ => return None,
    };
    let x = inputs[0].tensor::<3>(d);
    Some(Box::new(move |_| Ok(Output::Cube(f(x.clone())))))
}

struct Contestant {
    device: Device,
    run: Option<Run>,
    last: Option<Output>,
}

impl Contestant {
    fn answer(&mut self, question: &Value) -> Result<Value, Fault> {
        if let Some(work) = question.get("work") {
            return self.prepare(work);
        }
        if let Some(n) = question.get("run").and_then(Value::as_u64) {
            return Ok(json!({"seconds": self.sample(n as usize)?}));
        }
        let file = question["write"]
            .as_str()
            .ok_or("a question that is not known")?;
        let elements = self.last.as_ref().ok_or("nothing has run")?.elements()?;
        let bytes: Vec<u8> = elements.iter().flat_map(|f| f.to_le_bytes()).collect();
        std::fs::write(file, bytes)?;
        Ok(json!({"wrote": elements.len()}))
    }

    fn prepare(&mut self, work: &Value) -> Result<Value, Fault> {
        (self.run, self.last) = (None, None);
        self.device.memory_cleanup();
        let sources = work["inputs"].as_array().ok_or("work without inputs")?;
        let inputs = sources
            .iter()
            .map(Input::read)
            .collect::<Result<Vec<_>, _>>()?;
        self.run = program(
            work["workload"].as_str().unwrap_or(""),
            &inputs,
            &self.device,
        );
        self.wait()?;
        Ok(match self.run {
            Some(_) => json!({"ready": true}),
            None => json!({"unsupported": "not written"}),
        })
    }

    fn sample(&mut self, n: usize) -> Result<f64, Fault> {
        let run = self.run.as_ref().ok_or("no workload yet")?;
        let start = Instant::now();
        for step in 0..n {
            let y = run(step)?;
            self.wait()?;
            self.last = Some(y);
        }
        Ok(start.elapsed().as_secs_f64() / n as f64)
    }

    /// Returns when the device has computed everything.
    fn wait(&self) -> Result<(), Fault> {
        self.device.sync().map_err(|e| format!("{e:?}").into())
    }
}

#[allow(deprecated)] // ndarray is, and still what many programs use
fn device(backend: &str) -> Option<Device> {
    match backend {
        #[cfg(feature = "flex")]
        "flex" => Some(Device::flex()),
        #[cfg(feature = "ndarray")]
        "ndarray" => Some(Device::ndarray()),
        #[cfg(feature = "vulkan")]
        "vulkan" => Some(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
        _ => None,
    }
}

fn main() -> Result<(), Fault> {
    let arguments: Vec<String> = std::env::args().collect();
    let backend = arguments.get(1).ok_or("which backend?")?;
    let device = device(backend).ok_or(format!("built without {backend}"))?;
    if arguments.get(2).is_some_and(|a| a == "--versions") {
        println!("{}", json!({"burn": BURN}));
        return Ok(());
    }
    let mut contestant = Contestant {
        device,
        run: None,
        last: None,
    };
    for line in std::io::stdin().lock().lines() {
        let answer = contestant.answer(&serde_json::from_str(&line?)?);
        let text = answer.unwrap_or_else(|e| json!({"error": e.to_string()}));
        println!("{text}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
