import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.concurrent.Executors;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

/** A server of HTTP over Java's own TLS: {@code CERTIFICATE KEY}, both PEM. Prints its port. */
public class OwnTls {
    private static final byte[] ANSWER = "as asked".getBytes();

    public static void main(String[] arguments) throws Exception {
        var server = HttpsServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setHttpsConfigurator(new HttpsConfigurator(context(Path.of(arguments[0]), Path.of(arguments[1]))));
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, ANSWER.length);
            exchange.getResponseBody().write(ANSWER);
            exchange.close();
        });
        server.start();
        System.out.println(server.getAddress().getPort());
    }

    private static SSLContext context(Path certificate, Path key) throws Exception {
        Certificate[] chain;
        try (var in = Files.newInputStream(certificate)) {
            chain = new Certificate[] {CertificateFactory.getInstance("X.509").generateCertificate(in)};
        }
        var text = Files.readString(key).replaceAll("-----[A-Z ]+-----|\\s", "");
        var encoded = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text));
        var store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setKeyEntry("server", KeyFactory.getInstance("EC").generatePrivate(encoded), new char[0], chain);
        var keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, new char[0]);
        var context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        return context;
    }
}
