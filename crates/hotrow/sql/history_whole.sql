-- Whether nothing was ever forgotten.
select s.history_whole from hotrow.setting s where s.one
