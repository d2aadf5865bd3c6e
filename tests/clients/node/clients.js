// The vendors' clients for Node against a served /v1: `node clients.js CASE MODEL` prints what came back, as JSON.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [, , name, model] = process.argv;
const url = process.env.CLIENTS_URL;
const openai = new OpenAI({ baseURL: url, apiKey: process.env.CLIENTS_KEY, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url.replace(/\/v1$/, ""), apiKey: process.env.CLIENTS_KEY, maxRetries: 0 });
const schema = { type: "object", properties: { number: { type: "integer" } }, required: ["number"] };
const hello = [{ role: "user", content: "hello" }];
const double = [{ role: "user", content: "double 21" }];

const cases = {
  async "responses whole"() {
    const answer = await openai.responses.create({ model, input: "hello", store: false });
    return { text: answer.output_text, tokens: answer.usage.output_tokens };
  },
  async "responses streamed"() {
    const stream = openai.responses.stream({ model, input: "hello", store: false });
    let text = "";
    stream.on("response.output_text.delta", (event) => (text += event.delta));
    const answer = await stream.finalResponse();
    return { text, whole: answer.output_text, tokens: answer.usage.output_tokens };
  },
  async "responses tool"() {
    const tools = [{ type: "function", name: "double", parameters: schema, strict: false }];
    const answer = await openai.responses.create({ model, input: double, tools, store: false });
    const call = answer.output.find((item) => item.type === "function_call");
    const result = { type: "function_call_output", call_id: call.call_id, output: "42" };
    const final = await openai.responses.create({ model, input: [...double, ...answer.output, result], tools });
    return { name: call.name, arguments: JSON.parse(call.arguments), text: final.output_text };
  },
  async "responses error"() {
    try {
      await openai.responses.create({ model: "nobody", input: "hello" });
    } catch (error) {
      return { kind: error.constructor.name, code: error.code, id: error.requestID === error.error.request_id };
    }
  },
  async "messages whole"() {
    const answer = await anthropic.messages.create({ model, max_tokens: 50, messages: hello });
    return { text: answer.content[0].text, tokens: answer.usage.output_tokens };
  },
  async "messages streamed"() {
    const stream = anthropic.messages.stream({ model, max_tokens: 50, messages: hello });
    let text = "";
    stream.on("text", (piece) => (text += piece));
    const answer = await stream.finalMessage();
    return { text, whole: answer.content[0].text, tokens: answer.usage.output_tokens };
  },
  async "messages tool"() {
    const options = { model, max_tokens: 50, tools: [{ name: "double", input_schema: schema }] };
    const answer = await anthropic.messages.create({ ...options, messages: double });
    const call = answer.content.find((block) => block.type === "tool_use");
    const result = [{ type: "tool_result", tool_use_id: call.id, content: "42" }];
    const turns = [...double, { role: "assistant", content: answer.content }, { role: "user", content: result }];
    const final = await anthropic.messages.create({ ...options, messages: turns });
    return { name: call.name, arguments: call.input, text: final.content[0].text };
  },
  async "messages error"() {
    try {
      await anthropic.messages.create({ model: "nobody", max_tokens: 5, messages: hello });
    } catch (error) {
      return { kind: error.constructor.name, code: error.error.error.code, id: error.requestID === error.error.request_id };
    }
  },
  async "messages count"() {
    return await anthropic.messages.countTokens({ model, messages: hello });
  },
};

console.log(JSON.stringify(await cases[name]()));
