// The entity of Hibernate and of Spring Data JDBC.

package frameworks;

import jakarta.persistence.Entity;

@Entity
public class Item {
    @jakarta.persistence.Id
    @org.springframework.data.annotation.Id
    public Long id;
    public int sold;
}
