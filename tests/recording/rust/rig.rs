// rig 0.44 with tracing-opentelemetry, as its example agent_with_tools_otel sets it up (rig.Cargo.toml). CONTENT=1: record_content_telemetry.
use anyhow::{anyhow, Result};
use futures::StreamExt;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::{trace::SdkTracerProvider, Resource};
use rig::agent::MultiTurnStreamItem;
use rig::memory::InMemoryConversationMemory;
use rig::prelude::*;
use rig::providers::openai::OpenAIConfig;
use rig::tool::{ToolContext, ToolExecutionError};
use serde::Deserialize;
use serde_json::{json, Value};
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

fn stage() -> String {
    std::env::var("STAGE").unwrap_or("http://127.0.0.1:8471".into())
}

fn post(path: &str, body: Value) -> Result<Value, String> {
    match ureq::post(&format!("{}{path}", stage())).send_json(body) {
        Ok(answer) => Ok(answer.into_json().unwrap()),
        Err(ureq::Error::Status(_, answer)) => Err(answer.into_json::<Value>().unwrap()["message"].as_str().unwrap_or("").into()),
        Err(error) => panic!("{error}"),
    }
}

macro_rules! tool {
    ($type:ident, $arguments:ident, $name:literal, $does:literal, $($field:ident: $kind:ty = $json:literal),+) => {
        #[derive(Deserialize, serde::Serialize)]
        struct $arguments { $($field: $kind),+ }
        struct $type;
        impl Tool for $type {
            const NAME: &'static str = $name;
            type Error = ToolExecutionError;
            type Args = $arguments;
            type Output = Value;

            fn description(&self) -> String {
                $does.into()
            }

            fn parameters(&self) -> Value {
                json!({"type": "object", "properties": {$(stringify!($field): {"type": $json}),+}, "required": [$(stringify!($field)),+]})
            }

            async fn call(&self, _context: &mut ToolContext, args: Self::Args) -> Result<Value, ToolExecutionError> {
                post(concat!("/tools/", $name), json!(args)).map(|said| said["result"].clone()).map_err(ToolExecutionError::other)
            }
        }
    };
}

tool!(Weather, City, "get_weather", "The weather in a city", city: String = "string");
tool!(Currency, Money, "convert_currency", "Convert US dollars", amount: i64 = "number", currency: String = "string");
tool!(Orders, Order, "lookup_order", "Where an order is", order_id: String = "string");
tool!(Jobs, Job, "check_job", "The state of a job", job_id: String = "string");

async fn run(plan: &Value, memory: &InMemoryConversationMemory, input: &str, content: bool) -> Result<String> {
    let model = OpenAIConfig::new("none").with_base_url(format!("{}/v1", stage())).client().chat("gpt-4.1-mini").erase();
    let agent = || AgentBuilder::new(model.clone()).default_max_turns(8).record_content_telemetry(content);
    let mut assistant = agent().name("assistant").preamble("You are a helpful assistant.");
    if plan["conversation_id"].is_string() {
        assistant = assistant.memory(memory.clone());
    }
    for document in plan["documents"].as_array().unwrap() {
        assistant = assistant.context(document["content"].as_str().unwrap());
    }
    let assistant = if plan["sub_agent"].is_string() {
        let specialist = agent().name("travel_specialist").description("Knows what to pack").preamble("You are a travel specialist.").tool(Weather).build();
        assistant.dynamic_tool(specialist.into_tool()?).build()
    } else {
        assistant.tool(Weather).tool(Currency).tool(Orders).tool(Jobs).build()
    };
    let mut runner = assistant.prompt(input);
    if let Some(id) = plan["conversation_id"].as_str() {
        runner = runner.conversation(id);
    }
    if plan["stream"] != true {
        return Ok(runner.await?.output().to_string());
    }
    let mut stream = runner.stream();
    let mut said = None;
    while let Some(item) = stream.next().await {
        if let MultiTurnStreamItem::FinalResponse(last) = item? {
            said = Some(last.output().to_string());
        }
    }
    said.ok_or(anyhow!("no final response"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().with_endpoint(format!("{}/v1/traces", stage())).build()?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name("assistant").build())
        .build();
    tracing_subscriber::registry()
        .with(tracing_subscriber::EnvFilter::new("info"))
        .with(tracing_opentelemetry::layer().with_tracer(provider.tracer("assistant")))
        .init();
    let (set, content) = (std::env::var("SET")?, std::env::var("CONTENT").is_ok());
    let list = std::env::var("SCENARIOS").unwrap_or("s1,s2,s3,s4,s5,s6,s7,s8,s9,s9b,s10,s10b,s11".into());
    for scenario in list.split(',') {
        let plan = post("/control/start", json!({"set": set, "scenario": scenario})).unwrap();
        let memory = InMemoryConversationMemory::new();
        for (index, turn) in plan["turns"].as_array().unwrap().iter().enumerate() {
            post("/control/turn", json!({"index": index})).unwrap();
            if plan["sub_agent"].is_string() {
                let mut steps = plan["steps"].clone(); // rig's hand-over has an argument of its own
                let task = steps[0]["tool_calls"][0]["arguments"]["task"].take();
                steps[0]["tool_calls"][0]["arguments"] = json!({"prompt": task});
                post("/__script", json!({"steps": steps, "salt": set})).unwrap();
            }
            let said = match run(&plan, &memory, turn["user_input"].as_str().unwrap(), content).await {
                Ok(answer) => json!({"answer": answer}),
                Err(error) => json!({"error": {"type": "PromptError", "message": error.to_string()}}),
            };
            post("/control/answer", said).unwrap();
        }
        provider.force_flush().ok();
        println!("{set}/{scenario} {}", post("/control/finish", json!({"versions": {"rig": "0.44.0"}})).unwrap());
    }
    provider.shutdown().ok();
    Ok(())
}
