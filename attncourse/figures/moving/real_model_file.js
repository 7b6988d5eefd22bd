// A GGUF file as it lies in memory: its fields, where its tensors are, and its words in pieces.
/** What cannot be done, in a sentence for the reader. */
class Refused extends Error {}
const refuse = said => { throw new Refused(said); };
const ANOTHER = "This page runs a Llama in Q4_1, the file that attncourse model fetches.";
/** Numbers a block and bytes a block of what the file stores, by its number there. */
const STORED = {0: ["F32", 1, 4], 3: ["Q4_1", 32, 20], 8: ["Q8_0", 32, 34]};

/** Fields by name, and of each tensor how and where it is stored. */
const readGguf = bytes => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), text = new TextDecoder();
  let at = 0;
  const number = (name, size) => { at += size; return view[`get${name}`](at - size, true); };
  const long = () => Number(number("BigUint64", 8));
  const string = () => {
    const size = long();
    if (size > bytes.length - at) throw new RangeError();
    at += size;
    return text.decode(bytes.subarray(at - size, at));
  };
  const READ = [["Uint8", 1], ["Int8", 1], ["Uint16", 2], ["Int16", 2], ["Uint32", 4], ["Int32", 4], ["Float32", 4]]
    .map(one => () => number(...one)).concat(() => !!number("Uint8", 1), string, () => {
      const kind = number("Uint32", 4), size = long();
      if (size > bytes.length - at) throw new RangeError();
      return Array.from({length: size}, () => READ[kind]());
    }, long, () => Number(number("BigInt64", 8)), () => number("Float64", 8));
  try {
    if (text.decode(bytes.subarray(0, 4)) !== "GGUF") refuse(`This is no GGUF file. ${ANOTHER}`);
    at = 8;
    const count = long(), pairs = long(), fields = {}, tensors = {};
    for (let i = 0; i < pairs; i++) { const name = string(); fields[name] = READ[number("Uint32", 4)](); }
    for (let i = 0; i < count; i++) {
      const name = string(), shape = Array.from({length: number("Uint32", 4)}, long).reverse();
      tensors[name] = {name, shape, kind: number("Uint32", 4), start: long()};
    }
    const unit = fields["general.alignment"] || 32, data = Math.ceil(at / unit) * unit;
    for (const tensor of Object.values(tensors)) {
      const [how, numbers, size] = STORED[tensor.kind] || [];
      tensor.start += data;
      // Refused where it is asked for.
      if (!how) continue;
      const end = tensor.start + tensor.shape.reduce((a, b) => a * b, 1) / numbers * size;
      if (!(end <= bytes.length)) refuse(`The file is cut off: ${tensor.name} ends at byte ${end}, the file at ${bytes.length}. Take a whole one.`);
      tensor.how = how;
    }
    return {fields, tensors};
  } catch (error) {
    if (error instanceof Refused) throw error;
    return refuse(`The file is cut off or no GGUF file (at byte ${at} of ${bytes.length}). Take a whole one.`);
  }
};

/** The sizes of the Llama in a file, and its tensors by layer; a sentence for any other. */
const readLlama = ({fields, tensors}) => {
  const kind = fields["general.architecture"], field = (name, unless) => fields[`llama.${name}`] ?? unless;
  if (kind !== "llama") refuse(`The model in this file is a ${kind}. ${ANOTHER}`);
  const d = field("embedding_length"), heads = field("attention.head_count"), layers = field("block_count"), ff = field("feed_forward_length");
  const kvHeads = field("attention.head_count_kv", heads), dHead = d / heads, vocab = fields["tokenizer.ggml.tokens"]?.length;
  for (const [name, size] of Object.entries({embedding_length: d, "attention.head_count": heads, "attention.head_count_kv": kvHeads, block_count: layers, feed_forward_length: ff}))
    if (!Number.isInteger(size) || size < 1) refuse(`The file’s field llama.${name} is no count. ${ANOTHER}`);
  if (dHead % 2 || heads % kvHeads) refuse(`The file’s ${heads} heads of ${kvHeads} keys and values do not divide ${d} features. ${ANOTHER}`);
  for (const [name, usual] of [["attention.key_length", dHead], ["rope.dimension_count", dHead], ["rope.scaling.type", "none"], ["expert_count", 0]])
    if (field(name, usual) !== usual) refuse(`The file’s field llama.${name} is ${field(name)}, expected ${usual}. ${ANOTHER}`);
  const take = (name, shape, ...hows) => {
    const tensor = tensors[name] || refuse(`The file lacks the tensor ${name}. ${ANOTHER}`);
    if (String(tensor.shape) !== String(shape)) refuse(`The tensor ${name} has shape ${tensor.shape}, expected ${shape}. ${ANOTHER}`);
    if (!hows.includes(tensor.how)) refuse(`The tensor ${name} is stored as number ${tensor.how || tensor.kind} of GGUF’s list, expected ${hows.join(" or ")}. ${ANOTHER}`);
    return tensor;
  };
  const matrix = (name, ...shape) => take(name, shape, "Q4_1", "Q8_0"), gain = name => take(name, [d], "F32");
  const table = matrix("token_embd.weight", vocab, d), dKv = kvHeads * dHead;
  const blocks = Array.from({length: layers}, (_, i) => {
    const of = name => `blk.${i}.${name}.weight`;
    return {norm1: gain(of("attn_norm")), norm2: gain(of("ffn_norm")), q: matrix(of("attn_q"), d, d), k: matrix(of("attn_k"), dKv, d),
      v: matrix(of("attn_v"), dKv, d), o: matrix(of("attn_output"), d, d), gate: matrix(of("ffn_gate"), ff, d),
      up: matrix(of("ffn_up"), ff, d), down: matrix(of("ffn_down"), d, ff)};
  });
  return {d, heads, kvHeads, dHead, dKv, ff, layers, vocab, table, blocks, norm: gain("output_norm.weight"),
    out: tensors["output.weight"] ? matrix("output.weight", vocab, d) : table,
    base: field("rope.freq_base", 10000), eps: field("attention.layer_norm_rms_epsilon", 1e-5), name: fields["general.name"] || "a Llama"};
};

/** A visible character for each byte, as models of this family have them. */
const SIGNS = [];
for (let b = 0, next = 256; b < 256; b++) SIGNS.push(String.fromCharCode(b > 32 && b < 127 || b > 160 && b < 173 || b > 173 ? b : next++));
const BYTE = new Map(SIGNS.map((sign, b) => [sign, b]));
// Of GPT-2: an English ending, letters, digits, other marks, spaces but for the last, spaces.
const SPACE = "\\p{White_Space}", WORD = new RegExp(`'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^${SPACE}\\p{L}\\p{N}]+|${SPACE}+(?![^${SPACE}])|${SPACE}+`, "gu");

/** Text to the ids of its pieces, and back. */
class Pieces {
  constructor(fields) {
    const of = name => fields[`tokenizer.ggml.${name}`], pre = of("pre");
    if (of("model") !== "gpt2" || !["smollm", "gpt-2"].includes(pre)) refuse(`The words of this file are cut as ${of("model")}, ${pre}, expected gpt2, smollm. ${ANOTHER}`);
    this.tokens = of("tokens");
    this.ids = new Map(this.tokens.map((token, id) => [token, id]));
    this.ranks = new Map(of("merges").map((pair, rank) => [pair, rank]));
    this.special = new Set((of("token_type") || []).flatMap((kind, id) => kind === 3 ? [id] : []));
    this.digits = pre === "smollm";
    this.end = of("eos_token_id");
    const template = fields["tokenizer.chat_template"] || "";
    // Without it no chat.
    this.system = /<\|im_start\|>system\n([^<]*)<\|im_end\|>/.exec(template)?.[1];
    const written = [...this.special].map(id => this.tokens[id]).sort((a, b) => b.length - a.length);
    this.marks = written.length ? new RegExp(`(${written.map(token => token.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|")})`, "u") : /(?!)/;
    this.known = new Map();
  }
  encode(text) {
    return text.split(this.marks).flatMap((part, i) => i % 2 ? this.ids.get(part)
      : (this.digits ? part.split(/(\p{N})/u) : [part]).flatMap(piece => piece.match(WORD) || []).flatMap(word => this.ofWord(word)));
  }
  /** A word begins as its bytes, and the pair of lowest rank is joined until none has one. */
  ofWord(word) {
    if (this.known.has(word)) return this.known.get(word);
    let parts = [...new TextEncoder().encode(word)].map(b => SIGNS[b]).filter(sign => this.ids.has(sign));
    for (;;) {
      let best = "", lowest = Infinity;
      for (let i = 0; i + 1 < parts.length; i++) {
        const pair = `${parts[i]} ${parts[i + 1]}`, rank = this.ranks.get(pair);
        if (rank < lowest) { lowest = rank; best = pair; }
      }
      if (!best) break;
      const next = [];
      for (let i = 0; i < parts.length; i++) next.push(`${parts[i]} ${parts[i + 1]}` === best ? parts[i] + parts[++i] : parts[i]);
      parts = next;
    }
    const ids = parts.map(part => this.ids.get(part));
    this.known.set(word, ids);
    return ids;
  }
  decode(ids) {
    const bytes = ids.flatMap(id => this.special.has(id) ? [...new TextEncoder().encode(this.tokens[id])] : [...this.tokens[id]].map(sign => BYTE.get(sign)));
    return new TextDecoder("utf-8", {ignoreBOM: true}).decode(Uint8Array.from(bytes));
  }
  /** The ids of a question, up to where the model answers. */
  chat(text) {
    return this.encode(`<|im_start|>system\n${this.system}<|im_end|>\n<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`);
  }
}
