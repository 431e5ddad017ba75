import java.net.InetSocketAddress;
import java.nio.channels.Selector;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** A server that has next to nothing to do: an event loop, a pool and a clock. */
public class IdleServer {
    public static void main(String[] arguments) throws Exception {
        var pool = Executors.newFixedThreadPool(4);
        var clock = Executors.newScheduledThreadPool(1);
        clock.scheduleAtFixedRate(() -> pool.submit(() -> {}), 0, 50, TimeUnit.MILLISECONDS);
        var selector = Selector.open();
        var listener = ServerSocketChannel.open().bind(new InetSocketAddress("127.0.0.1", 0));
        listener.configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
        System.out.println("listening on " + listener.getLocalAddress());
        while (true) {
            selector.select(100);
            selector.selectedKeys().clear();
        }
    }
}
