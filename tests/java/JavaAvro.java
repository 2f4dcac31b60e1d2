import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.Incompatibility;
import org.apache.avro.SchemaNormalization;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;
import org.apache.avro.message.BinaryMessageDecoder;
import org.apache.avro.message.BinaryMessageEncoder;

/**
 * What Apache Avro's own library makes of schemas and bytes: a JSON request a line in, a JSON reply a line out.
 *
 * <p>Values are in Avro's JSON encoding, without logical types: dates are numbers, decimals the bytes of their digits.
 */
public final class JavaAvro {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final GenericData MODEL = new GenericData();

  /** By its text, since a run asks thousands of times about a few dozen. */
  private final Map<String, Schema> schemas = new HashMap<>();

  public static void main(String[] arguments) throws IOException {
    var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var replies = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    var avro = new JavaAvro();
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      replies.println(JSON.writeValueAsString(avro.answer(JSON.readTree(line))));
    }
  }

  private ObjectNode answer(JsonNode request) {
    ObjectNode reply = JSON.createObjectNode();
    try {
      Schema schema = schema(request.get("schema"));
      switch (request.get("do").asText()) {
        case "fingerprint" -> fingerprint(schema, reply);
        case "read" -> read(schema, request, reply);
        case "write" -> write(schema, request, reply);
        case "compatible" -> compatible(schema, schema(request.get("writer")), reply);
        default -> throw new IllegalArgumentException("unknown request " + request);
      }
    } catch (IOException | RuntimeException error) { // Avro's errors are runtime exceptions of many classes
      Throwable why = error;
      while (why.getCause() != null) {
        why = why.getCause();
      }
      reply.put("error", error == why ? error.toString() : error + ": " + why);
    }
    return reply;
  }

  private Schema schema(JsonNode text) {
    return schemas.computeIfAbsent(text.asText(), one -> new Schema.Parser().parse(one));
  }

  private static void fingerprint(Schema schema, ObjectNode reply) {
    long littleEndian = Long.reverseBytes(SchemaNormalization.parsingFingerprint64(schema));
    reply.put("fingerprint", HexFormat.of().toHexDigits(littleEndian));
    reply.put("canonical", SchemaNormalization.toParsingForm(schema));
  }

  private void read(Schema written, JsonNode request, ObjectNode reply) throws IOException {
    Schema wanted = request.has("reader") ? schema(request.get("reader")) : written;
    var decoder = new BinaryMessageDecoder<Object>(MODEL, wanted); // refuses a header of another schema
    decoder.addSchema(written);
    var bytes = new ByteArrayInputStream(Base64.getDecoder().decode(request.get("value").asText()));
    Object value = decoder.decode(bytes);
    if (bytes.available() > 0) {
      throw new IOException(bytes.available() + " bytes too many");
    }
    var out = new ByteArrayOutputStream();
    JsonEncoder json = EncoderFactory.get().jsonEncoder(wanted, out);
    new GenericDatumWriter<Object>(wanted, MODEL).write(value, json);
    json.flush();
    reply.put("json", out.toString(StandardCharsets.UTF_8));
    fingerprint(written, reply);
  }

  private static void write(Schema schema, JsonNode request, ObjectNode reply) throws IOException {
    var json = DecoderFactory.get().jsonDecoder(schema, request.get("json").asText());
    Object value = new GenericDatumReader<Object>(schema, schema, MODEL).read(null, json);
    var out = new ByteArrayOutputStream();
    new BinaryMessageEncoder<Object>(MODEL, schema).encode(value, out);
    reply.put("value", Base64.getEncoder().encodeToString(out.toByteArray()));
  }

  private static void compatible(Schema reader, Schema writer, ObjectNode reply) {
    Schema renamed = Schema.applyAliases(writer, reader); // as its readers do before they resolve
    ArrayNode reasons = reply.putArray("reasons");
    var result = SchemaCompatibility.checkReaderWriterCompatibility(reader, renamed).getResult();
    for (Incompatibility one : result.getIncompatibilities()) {
      reasons.add(one.getType() + " at " + one.getLocation() + ": " + one.getMessage());
    }
  }
}
