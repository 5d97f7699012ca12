select * from hotrow.consume(:user, 20);
