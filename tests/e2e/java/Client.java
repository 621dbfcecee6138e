/* The CloudEvents project's Java client as a user of Sluice: publishes events, and reads them back with its own deserializer.
 *
 *   publish BROKERS TOPIC structured|binary   lines of standard input: PARTITION, ID, TYPE, SOURCE, JSON data, NAME=VALUE..., by tabs
 *   consume BROKERS TOPIC                     what the topic holds now, one event a line in JSON format */
import io.cloudevents.CloudEvent;
import io.cloudevents.core.builder.CloudEventBuilder;
import io.cloudevents.core.message.Encoding;
import io.cloudevents.jackson.JsonFormat;
import io.cloudevents.kafka.CloudEventDeserializer;
import io.cloudevents.kafka.CloudEventSerializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Client {
	private static CloudEvent event(String[] fields) {
		CloudEventBuilder builder = CloudEventBuilder.v1().withId(fields[1]).withType(fields[2]).withSource(URI.create(fields[3]))
			.withData("application/json", fields[4].getBytes(StandardCharsets.UTF_8));
		for (int i = 5; i < fields.length; i++) {
			int equals = fields[i].indexOf('=');
			builder.withExtension(fields[i].substring(0, equals), fields[i].substring(equals + 1));
		}
		return builder.build();
	}

	private static void publish(Map<String, Object> settings, String topic, String mode) throws Exception {
		settings.put(CloudEventSerializer.ENCODING_CONFIG, Encoding.valueOf(mode.toUpperCase()));
		settings.put(CloudEventSerializer.EVENT_FORMAT_CONFIG, JsonFormat.CONTENT_TYPE);
		settings.put("key.serializer", StringSerializer.class);
		settings.put("value.serializer", CloudEventSerializer.class);
		settings.put("linger.ms", 0);
		List<Future<RecordMetadata>> sent = new ArrayList<>();
		try (KafkaProducer<String, CloudEvent> producer = new KafkaProducer<>(settings);
			BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
			for (String line = in.readLine(); line != null; line = in.readLine()) {
				String[] fields = line.split("\t");
				CloudEvent event = event(fields);
				sent.add(producer.send(new ProducerRecord<>(topic, Integer.valueOf(fields[0]), event.getId(), event)));
			}
			for (Future<RecordMetadata> one : sent)
				one.get();
		}
	}

	private static void consume(Map<String, Object> settings, String topic) {
		PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
		settings.put("key.deserializer", StringDeserializer.class);
		settings.put("value.deserializer", CloudEventDeserializer.class);
		settings.put("enable.auto.commit", false);
		settings.put("auto.offset.reset", "earliest");
		try (KafkaConsumer<String, CloudEvent> consumer = new KafkaConsumer<>(settings)) {
			List<TopicPartition> partitions = new ArrayList<>();
			for (PartitionInfo info : consumer.partitionsFor(topic))
				partitions.add(new TopicPartition(topic, info.partition()));
			consumer.assign(partitions);
			consumer.seekToBeginning(partitions);
			Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
			while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue()))
				for (ConsumerRecord<String, CloudEvent> record : consumer.poll(Duration.ofMillis(200)))
					out.println(new String(new JsonFormat().serialize(record.value()), StandardCharsets.UTF_8));
		}
		out.flush();
	}

	public static void main(String[] args) throws Exception {
		Map<String, Object> settings = new HashMap<>();
		settings.put("bootstrap.servers", args[1]);
		if (args[0].equals("publish"))
			publish(settings, args[2], args[3]);
		else
			consume(settings, args[2]);
	}
}
